"""The images that are made of Debian's packages: the base of all others, and Redis."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.fingerprint import fingerprint
from images.tools.go_builds import Report
from playground.without_registry.archive import PATH_VARIABLE, Image, architecture, write_archive
from playground.without_registry.layer import write_layer
from playground.without_registry.root_filesystem import complete, complete_python, download, unpack

_SYSTEM: Final = ("base-files", "libc6", "libgcc-s1", "gcc-12-base", "libcrypt1", "busybox-static", "netbase", "tzdata")
_PYTHON: Final = (
    *("bash", "ca-certificates", "libbz2-1.0", "libcom-err2", "libdb5.3", "libexpat1", "libffi8", "libgssapi-krb5-2"),
    *("libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "liblzma5", "libncursesw6", "libnsl2"),
    *("libpython3.11-minimal", "libpython3.11-stdlib", "libreadline8", "libsqlite3-0", "libssl3", "libstdc++6"),
    *("libtinfo6", "libtirpc3", "libuuid1", "media-types", "python3.11", "python3.11-minimal", "zlib1g"),
)
_REDIS: Final = (
    *("redis-server", "redis-tools", "libatomic1", "libcap2", "libgcrypt20", "libgpg-error0", "libjemalloc2"),
    *("liblua5.1-0", "liblz4-1", "liblzf1", "liblzma5", "libssl3", "libstdc++6", "libsystemd0", "libzstd1"),
    *("lua-bitop", "lua-cjson"),
)


@dataclass(frozen=True, slots=True)
class RootImage:
    """An image of one layer, out of packages; with Python when it has a version of it."""

    reference: str
    packages: tuple[str, ...]
    environment: tuple[str, ...] = (PATH_VARIABLE, "LANG=C.UTF-8")
    entrypoint: tuple[str, ...] = ()
    python: str = ""

    def fingerprint(self) -> str:
        """The fingerprint of what it is made of; versions of packages are those that apt has when it is made."""
        code = [(Path(__file__).parent / name).read_bytes() for name in ("layer.py", "root_filesystem.py")]
        words = [self.reference, *self.packages, *self.environment, *self.entrypoint, self.python, architecture()]
        return fingerprint(*words, *code)

    def make(self, archive: Path, label: tuple[str, str], report: Report) -> None:
        """Write its archive. Raises TestImagesError."""
        report(f"making {self.reference} of {len(self.packages)} packages of Debian ...")
        with tempfile.TemporaryDirectory(prefix="making-", dir=archive.parent) as folder:
            packages, root, layer = Path(folder, "packages"), Path(folder, "root"), Path(folder, "layer.tar")
            packages.mkdir()
            root.mkdir()
            unpack(download(self.packages, packages), root)
            complete(root)
            if self.python:
                complete_python(root, self.python)
            write_layer(layer, root)
            image = Image((self.reference,), self.entrypoint, self.environment, labels=dict([label]))
            write_archive(archive, layer, [image])


BASE: Final = RootImage("delaytopic-e2e/python:3.11", (*_SYSTEM, *_PYTHON), python="3.11")
REDIS: Final = RootImage("delaytopic-e2e/redis:7.0", (*_SYSTEM, *_REDIS), entrypoint=("redis-server",))
