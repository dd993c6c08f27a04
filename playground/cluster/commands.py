"""Runs a program to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from playground.cluster.errors import CommandFailed, MachineLacks

COMMAND_SECONDS = 300.0


def run(
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
    seconds: float = COMMAND_SECONDS,
) -> str:
    """Return what the program printed on standard output.

    `environment` is added to this process's, `given` is its input.


    Raises CommandFailed, and MachineLacks when there is no such program.
    """
    words = [str(word) for word in command]
    try:
        result = subprocess.run(
            words,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except FileNotFoundError as error:
        raise MachineLacks(f"there is no program {words[0]} on the PATH of this machine: install it") from error
    except subprocess.TimeoutExpired as expired:
        raise CommandFailed(words, f"not done after {seconds:g} s", _text(expired.stderr)) from expired
    if result.returncode != 0:
        raise CommandFailed(words, f"exit code {result.returncode}", result.stderr or result.stdout)
    return result.stdout


def succeeds(*command: str | Path, environment: Mapping[str, str] | None = None, seconds: float = 30.0) -> bool:
    """Tell whether the program is there and ends well in time."""
    try:
        run(*command, environment=environment, seconds=seconds)
    except (CommandFailed, MachineLacks):
        return False
    return True


def _text(output: bytes | str | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
