"""Edge: the pip of this interpreter, with the index, certificates and cache that this machine is set up for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from images.tools.errors import WheelsError

_TAIL = 12


def run_pip(arguments: Sequence[str], what: str, *, environment: Mapping[str, str] | None = None) -> None:
    """Raises WheelsError with the end of pip's output when it fails; `what` says what for."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        raise WheelsError(f"{sys.executable} has no pip: run this with the Python of .venv, which `make install` makes")
    lines = (done.stdout + done.stderr).strip().splitlines()[-_TAIL:]
    raise WheelsError("\n".join([f"pip failed while {what}:", *lines]))
