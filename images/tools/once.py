"""A cache of things made once a machine: whole or not at all, by one process at a time."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, filled by `make` unless an earlier run did."""
    if folder.is_dir():
        return folder
    with one_at_a_time(folder.parent, folder.name):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as unfinished:
                result = Path(unfinished) / folder.name
                result.mkdir()
                make(result)
                result.rename(folder)
    return folder


@contextmanager
def one_at_a_time(directory: Path, name: str) -> Iterator[None]:
    """Keep two processes from making the same in a cache at once; `name` is what is made."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
