"""promtool, Prometheus' checker of rules: the one on the path, or Debian's, kept outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.cluster.go_builds import ProgramsMissingError

DOWNLOAD_SECONDS = 300.0


def promtool_program(*, build: bool = True) -> Path:
    """Return the command; fetch it when this machine has none, unless told not to. Raises ProgramsMissingError."""
    if found := shutil.which("promtool"):
        return Path(found)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "delaytopic/prometheus"
    if not (cache / "promtool").exists():
        if not build:
            raise ProgramsMissingError("promtool is not on this machine yet: run make prepare")
        _fetch(cache)
    return cache / "promtool"


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
                f"promtool is not on the path, and Debian's package prometheus cannot be fetched ({error}): "
                "apt install prometheus, or https://prometheus.io/download"
            ) from error
        (folder / "unpacked/usr/bin/promtool").rename(cache / "promtool")


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS)
