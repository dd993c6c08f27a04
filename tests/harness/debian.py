"""Packages of Debian for tests, which root installs where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from typing import Final

_APT: Final = ("apt-get", "-o", "DPkg::Lock::Timeout=300")
_ONE_AT_A_TIME: Final = threading.Lock()
"""`apt-get update` does not wait for another one, whatever DPkg::Lock::Timeout says."""


def install_on_debian(package: str) -> None:
    """Install a package, and say so; nothing where that is not possible: no Debian, or not root.

    Raises OSError with the end of what apt-get said.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    with _ONE_AT_A_TIME:
        for command in ((*_APT, "update"), (*_APT, "install", "-y", "--no-install-recommends", package)):
            done = subprocess.run(
                command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
            )
            if done.returncode:
                raise OSError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    print(f"installed Debian's {package}", file=sys.stderr, flush=True)
