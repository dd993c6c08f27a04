"""The jars of a lock, downloaded once a machine: what Spark needs for Kafka and S3, and does not bring."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from images.tools.errors import JarsError
from images.tools.fingerprint import fingerprint
from images.tools.locking import lock_file
from images.tools.once import made_once
from images.tools.places import ROOT, cache_folder
from images.tools.wheelhouse import Report, existing_lock
from jgo.maven import MavenContext

JARS_LOCK: Final = "jars"


class Jar(NamedTuple):
    """One line of the lock."""

    digest: str
    group: str
    name: str
    version: str


def locked_jars(root: Path = ROOT) -> list[Jar]:
    """Return the jars of the checkout `root`."""
    lines = lock_file(JARS_LOCK, root=root).read_text(encoding="utf-8").splitlines()
    words = (line.split() for line in lines if not line.startswith("#"))
    return [Jar(digest, *coordinates.split(":")) for digest, coordinates in words]


def jar_folder(report: Report, *, root: Path = ROOT) -> Path:
    """Return the folder with all jars of the lock. Raises LockError and JarsError."""
    lock = existing_lock(JARS_LOCK, root)

    def download(into: Path) -> None:
        report(f"downloading the jars of {lock.name} (once) ...")
        maven = MavenContext()
        for jar in locked_jars(root):
            content = _content(maven, jar)
            if hashlib.sha256(content).hexdigest() != jar.digest:
                raise JarsError(f"{jar.name} {jar.version} is not what {lock.name} has the digest of")
            file = into / f"{jar.name}-{jar.version}.jar"
            file.write_bytes(content)
            file.chmod(0o644)

    return made_once(cache_folder("jars") / fingerprint(lock.read_bytes()), download)


def _content(maven: MavenContext, jar: Jar) -> bytes:
    try:
        return Path(maven.project(jar.group, jar.name).at_version(jar.version).artifact().resolve()).read_bytes()
    # jgo lets everything through that its HTTP library and its XML parser raise; each means the same here.
    except Exception as error:
        raise JarsError(f"{jar.group}:{jar.name}:{jar.version} cannot be downloaded: {error}") from error
