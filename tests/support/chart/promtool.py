"""Prometheus and promtool, its checker of rules: those on the path, or Debian's, kept outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from images.tools.go_builds import ProgramsMissingError

DOWNLOAD_SECONDS = 300.0
PROGRAMS = ("prometheus", "promtool")


def promtool_program(*, build: bool = True) -> Path:
    """Return the command; fetch it when this machine has none, unless told not to. Raises ProgramsMissingError."""
    return _program("promtool", build=build)


def prometheus_program(*, build: bool = True) -> Path:
    """Return the server; fetch it when this machine has none, unless told not to. Raises ProgramsMissingError."""
    return _program("prometheus", build=build)


def _program(name: str, *, build: bool) -> Path:
    if found := shutil.which(name):
        return Path(found)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delaytopic/prometheus"
    if not (cache / name).exists():
        if not build:
            raise ProgramsMissingError(f"{name} is not on this machine yet: run make prepare")
        _fetch(cache)
    return cache / name


def _fetch(cache: Path) -> None:
    """Unpack it from the package; nothing is installed, and no right is needed."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix="unpacking-") as unfinished:
        folder = Path(unfinished)
        try:
            _run(folder, "apt-get", "download", "prometheus")
            (package,) = folder.glob("prometheus_*.deb")
            _run(folder, "dpkg-deb", "--extract", str(package), "unpacked")
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise ProgramsMissingError(
                f"Prometheus is not on the path, and Debian's package prometheus cannot be fetched ({error}): "
                "apt install prometheus, or https://prometheus.io/download"
            ) from error
        for name in PROGRAMS:
            (folder / "unpacked/usr/bin" / name).rename(cache / name)


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS)
