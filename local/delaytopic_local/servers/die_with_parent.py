"""A program: run another program that the kernel kills as soon as the thread that started this one is gone.

    python -I -S die_with_parent.py <pid of the starter> <program> <argument>...

It replaces itself with the program, so that the process id, its session and its standard streams stay the same. On
systems without PR_SET_PDEATHSIG it only runs the program. Standard library only: it runs without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_EXIT_PARENT_GONE = 125
_EXIT_CANNOT_RUN = 127


def main(arguments: list[str]) -> int:
    """Arm the kernel's signal, then become the program; returns an exit code only when that was not possible."""
    starter, command = int(arguments[0]), arguments[1:]
    kill_me_when_my_parent_ends()
    if os.getppid() != starter:
        return _EXIT_PARENT_GONE  # it died before the signal was armed
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr)
    return _EXIT_CANNOT_RUN


def kill_me_when_my_parent_ends() -> None:
    """Have the kernel kill this process once the thread that started it is gone; nothing where it is not Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
