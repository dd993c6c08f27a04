"""Servers that all worker processes of one test run share: one Kafka, one Redis, one control plane.

The process that controls the run starts each server when a test first asks for it, and stops it at the end of the run.
Workers ask over a Unix socket whose address they inherit in the environment. Sharing asks for names that no other test
uses (`tests.harness.names`); a test that stops, freezes or misconfigures a server starts one of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Final, Protocol, Self

from images.tools.binaries import kubernetes_programs
from playground.kube.control_plane import OwnControlPlane, custom_resource_definitions
from tests.support.servers.secure_servers import SecureKafka, secure_kafka
from tests.support.servers.tls import Certificates, make_certificates

from delaytopic_local.servers.redis_server import RedisServer

ADDRESS: Final = "DELAYTOPIC_TEST_SERVERS"
"""The environment variable with the socket's path."""
_KEY: Final = b"delaytopic-tests"
# A broker's default floor is 6 s. Tests other than those of failover need not wait so long for a dead relay.
SHARED_KAFKA_SETTINGS: Final = {
    "auto.create.topics.enable": "true",  # Kafka's default: a relay must not create topics by asking for them
    "group.min.session.timeout.ms": "1000",
    # A test waits for compaction. Each look goes through the thousands of partitions that a run leaves behind.
    "log.cleaner.backoff.ms": "1000",
}


class KafkaAddress(Protocol):
    """Any broker, shared or a test's own."""

    @property
    def bootstrap_servers(self) -> str: ...


class RedisAddress(Protocol):
    """Any Redis, shared or a test's own."""

    @property
    def url(self) -> str: ...

    @property
    def port(self) -> int: ...


@dataclass(frozen=True)
class SharedKafka:
    """A broker with a plain listener (a super user's) and two guarded ones; ACLs are on."""

    listeners: SecureKafka
    certificates: Certificates

    @property
    def bootstrap_servers(self) -> str:
        """Of the plain listener."""
        return self.listeners.plain


@dataclass(frozen=True)
class SharedRedis:
    """A Redis that no test flushes, stops or reconfigures."""

    url: str
    port: int


@dataclass(frozen=True)
class SharedControlPlane:
    """The files of a control plane; `ControlPlane(programs, directory)` connects to it."""

    directory: Path


class SharedServers:
    """The controlling process's side: starts what it is asked for, once."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="delaytopic-tests-"))
        self._running = ExitStack()
        self._known: dict[str, Any] = {}
        self._starting: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._listener = Listener(str(self.directory / "servers.sock"), authkey=_KEY)
        self._thread = threading.Thread(target=self._accept, name="shared-servers", daemon=True)
        self._makers: dict[str, Callable[[Path], tuple[AbstractContextManager[Any], Callable[[Any], Any]]]] = {
            "kafka": _kafka,
            "redis": _redis,
            "control-plane": _control_plane,
        }

    def __enter__(self) -> Self:
        os.environ[ADDRESS] = str(self._listener.address)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop every server, and delete what they stored."""
        os.environ.pop(ADDRESS, None)
        self._listener.close()
        try:
            self._running.close()
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def get(self, name: str) -> Any:
        """Return what is known of a server; start it when nobody has asked before. A failed start fails all callers."""
        with self._lock:
            starting = self._starting.setdefault(name, threading.Lock())
        with starting:
            if name not in self._known:
                self._known[name] = self._start(name)
            if isinstance(self._known[name], Exception):
                raise self._known[name]
            return self._known[name]

    def _start(self, name: str) -> Any:
        directory = self.directory / name
        directory.mkdir()
        try:
            server, described = self._makers[name](directory)
            return described(self._running.enter_context(server))
        except Exception as error:
            return error

    def _accept(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except (OSError, EOFError):
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection[Any, Any]) -> None:
        with connection, suppress(EOFError, OSError):
            try:
                connection.send((self.get(connection.recv()), None))
            except Exception as error:
                connection.send((None, f"{type(error).__name__}: {error}"))


class SharedServerFailed(Exception):
    """A shared server could not be started; the text carries the reason."""


def ask_for(name: str) -> Any:
    """Return what is known of a shared server, from any process of the run. Raises SharedServerFailed."""
    with Client(os.environ[ADDRESS], authkey=_KEY) as connection:
        connection.send(name)
        answer, error = connection.recv()
    if error is not None:
        raise SharedServerFailed(f"{name}: {error}")
    return answer


def _kafka(directory: Path) -> tuple[AbstractContextManager[Any], Callable[[Any], Any]]:
    certificates = make_certificates(directory)
    server = secure_kafka(directory, certificates, SHARED_KAFKA_SETTINGS)
    return server, lambda listeners: SharedKafka(listeners, certificates)


def _redis(directory: Path) -> tuple[AbstractContextManager[Any], Callable[[Any], Any]]:
    return RedisServer(directory), lambda server: SharedRedis(server.url, server.port)


def _control_plane(directory: Path) -> tuple[AbstractContextManager[Any], Callable[[Any], Any]]:
    plane = OwnControlPlane(kubernetes_programs(), directory, before_controllers=custom_resource_definitions())
    return plane, lambda _: SharedControlPlane(directory)
