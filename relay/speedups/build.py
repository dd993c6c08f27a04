"""`python relay/speedups/build.py [INTO]`: compile the relay's speedups, an extension in C, by default in place.

Of the standard library only: wheels are built, and extensions compiled, where nothing else is installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
IN_PLACE: Final = HERE.parent / "delaytopic_relay"
NAME: Final = f"_speedups{sysconfig.get_config_var('EXT_SUFFIX')}"
"""The compiled file, by the suffix of this version of Python on this kind of machine."""
# Without the assertions of Python's headers, as Python's own extensions are compiled. With them the file would contain
# paths of this machine, and the same sources would give another file elsewhere.
OPTIONS: Final = ("-std=c11", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")
HARDENED: Final = (
    *("-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong"),
    *("-Wl,-z,relro", "-Wl,-z,now", "-Wl,-z,noexecstack"),
)
"""Ends the process where a buffer or the stack is written beyond, and leaves no table of addresses to write to."""
LIBRARIES: Final = ("-lpthread", "-ldl")
"""Parts of the C library itself since glibc 2.34, and empty there."""
PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


class ExtensionError(Exception):
    """The extension cannot be compiled here; the message says what to do."""


def compile_extension(into: Path) -> Path:
    """Return the compiled extension in a folder, made anew unless it is newer than what it is made of.

    Raises ExtensionError.
    """
    compiled = into / NAME
    if _is_current(compiled):
        return compiled
    into.mkdir(parents=True, exist_ok=True)
    # Renamed when it is whole, as other processes may compile or import it meanwhile. No module has the name of the
    # unfinished file; git and wheels leave it out by its suffix.
    number, name = tempfile.mkstemp(dir=into, prefix="_speedups.", suffix=".so")
    os.close(number)
    unfinished = Path(name)
    try:
        _compile(unfinished)
        unfinished.chmod(0o755)
        unfinished.replace(compiled)
    finally:
        unfinished.unlink(missing_ok=True)
    return compiled


def _is_current(compiled: Path) -> bool:
    made_of = [*HERE.glob("*.[ch]"), Path(__file__)]
    return compiled.is_file() and compiled.stat().st_mtime_ns > max(file.stat().st_mtime_ns for file in made_of)


def _compile(output: Path) -> None:
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise ExtensionError(f"Python {PYTHON} is free-threaded, which the speedups do not support: relays run without")
    sources = [str(source) for source in sorted(HERE.glob("*.c"))]
    command = [*_compiler(), *OPTIONS, *HARDENED, f"-I{_headers()}", *sources, "-o", str(output), *LIBRARIES]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise ExtensionError(f"{shlex.join(command)} failed with exit code {done.returncode}:\n{done.stdout}".rstrip())


def _compiler() -> list[str]:
    """Return the command of the environment, of this interpreter's own build, or `cc`."""
    asked_for, of_python = (shlex.split(text or "") for text in (os.environ.get("CC"), sysconfig.get_config_var("CC")))
    for command in [asked_for] if asked_for else [of_python, ["cc"]]:
        if command and shutil.which(command[0]) is not None:
            return command
    if asked_for:
        raise ExtensionError(f"there is no {asked_for[0]}, which CC names: name a C compiler that is installed")
    raise ExtensionError("there is no C compiler: install one (Debian and Ubuntu: apt install gcc libc6-dev)")


def _headers() -> Path:
    folder = Path(sysconfig.get_path("include"))
    if not (folder / "Python.h").is_file():
        install = f"install the headers of Python {PYTHON} (Debian and Ubuntu: apt install python3-dev)"
        raise ExtensionError(f"{folder} has no Python.h: {install}")
    return folder


def main(arguments: list[str]) -> int:
    """Compile into the folder that is named, or in place; return the exit code."""
    try:
        print(compile_extension(Path(arguments[0]) if arguments else IN_PLACE))
    except ExtensionError as error:
        print(f"speedups: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
