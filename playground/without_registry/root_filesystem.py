"""A root file system of some Debian packages, unpacked and not installed: without debootstrap and without root."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from playground.cluster.commands import run, succeeds
from playground.cluster.errors import CommandFailed
from playground.images.errors import TestImagesError
from playground.without_registry import debian

_MERGED: Final = ("bin", "sbin", "lib", "lib64")
_FOLDERS: Final = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/lib")
_DOWNLOAD_SECONDS: Final = 600.0
LEFT_OUT: Final = (
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/doc",
    "usr/share/doc-base",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/share/menu",
    "usr/share/zoneinfo/right",
)
USERS: Final = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
GROUPS: Final = "root:x:0:\nnogroup:x:65534:\n"


def download(packages: Sequence[str], into: Path) -> list[Path]:
    """Their .deb files in the order given. Raises TestImagesError where apt does not have them."""
    try:
        _apt_download(packages, into)
    except CommandFailed as error:
        # The lists may be old.
        if not debian.update():
            raise _not_to_be_had(error) from error
        try:
            _apt_download(packages, into)
        except CommandFailed as again:
            raise _not_to_be_had(again) from again
    return [_package_file(package, into) for package in packages]


def unpack(archives: Sequence[Path], root: Path) -> None:
    """Unpack into an empty folder; no script of a package runs."""
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for archive in archives:
        # Only now and then does Python's tarfile cope with a folder where there is a link to one: tar is told to.
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE) as reader:
            tar = ["tar", "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", str(root)]
            done = subprocess.run(tar, stdin=reader.stdout, capture_output=True, text=True, check=False)
        if done.returncode != 0 or reader.returncode != 0:
            raise TestImagesError(f"{archive.name} can't be unpacked: {done.stderr.strip()}")


def complete(root: Path) -> None:
    """Do what the scripts of packages would have done: users, certificates, a shell's commands; and less ballast."""
    (root / "etc/passwd").write_text(USERS, encoding="utf-8")
    (root / "etc/group").write_text(GROUPS, encoding="utf-8")
    (root / "tmp").chmod(0o1777)
    _join_certificates(root)
    _link_commands(root)
    for name in LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)


def complete_python(root: Path, version: str) -> None:
    """The names `python3` and `python`, and bytecode, written by the interpreter in the root itself."""
    for name in ("python3", "python"):
        (root / "usr/bin" / name).symlink_to(f"python{version}")
    loader = next(root.glob("lib*/ld-linux-*.so.*"))
    libraries = root / "usr/lib" / f"{platform.machine()}-linux-gnu"
    python = [str(loader), "--library-path", str(libraries), str(root / f"usr/bin/python{version}")]
    options = ["-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/"]
    environment = {"PYTHONHOME": str(root / "usr"), "PYTHONHASHSEED": "0"}
    # lib2to3 comes with a file that does not compile, on purpose.
    succeeds(*python, *options, root / f"usr/lib/python{version}", environment=environment, seconds=_DOWNLOAD_SECONDS)


def _join_certificates(root: Path) -> None:
    certificates = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    if certificates:
        bundle = root / "etc/ssl/certs/ca-certificates.crt"
        bundle.parent.mkdir(parents=True, exist_ok=True)
        bundle.write_bytes(b"".join(file.read_bytes() for file in certificates))
        default = root / "usr/lib/ssl/cert.pem"
        default.parent.mkdir(exist_ok=True)
        default.symlink_to("/etc/ssl/certs/ca-certificates.crt")


def _link_commands(root: Path) -> None:
    """All that busybox has and no package brought."""
    busybox = root / "usr/bin/busybox"
    for name in run(busybox, "--list").split():
        link = busybox.with_name(name)
        if not link.exists() and not (root / "usr/sbin" / name).exists():
            link.symlink_to("busybox")


def _apt_download(packages: Sequence[str], into: Path) -> None:
    command = ["apt-get", "-qq", "download", "-o", "APT::Sandbox::User=root", *packages]
    run("env", "--chdir", into, *command, seconds=_DOWNLOAD_SECONDS)


def _package_file(package: str, folder: Path) -> Path:
    """APT names files `package_version_architecture.deb`."""
    return next(folder.glob(f"{package}_*.deb"))


def _not_to_be_had(error: CommandFailed) -> TestImagesError:
    return TestImagesError(
        f"{error}\nthe base of the test images is made of packages of Debian 12: set DELAYTOPIC_E2E_BASE to an image "
        "with Python 3.11 and bash, such as python:3.11-slim, on a machine of another kind"
    )
