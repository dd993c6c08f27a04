"""A relay's own name in its group (KIP-345): the one that it is given, or one of this host that no other relay has."""

from __future__ import annotations

import os
import re
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from hashlib import sha256
from pathlib import Path

from delaytopic_relay.errors import ConfigurationError

MOST_ON_A_HOST = 64
"""Relays of one group; more than a host of any size has use for."""
_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_FOREIGN = re.compile(r"[^a-zA-Z0-9._-]+")


def member_name(text: str) -> str:
    """Return a name that Kafka takes. Raises `ConfigurationError`."""
    if not _NAME.fullmatch(text) or text in (".", ".."):
        raise ConfigurationError(
            f"--name may have 249 letters, digits, dots, dashes and underscores, and is {text!r:.80}"
        )
    return text


@contextmanager
def name_on_host(group_id: str, folder: Path | None = None) -> Iterator[str | None]:
    """Yield this host's name with the least number that no other relay of the group has here, while it is held.

    The system takes a lock back from a process however it ends, so that the next one begins under the same name. None
    where no file can be locked: such a relay is a member without a name.
    """
    host = _FOREIGN.sub("-", socket.gethostname())[:200] or "host"
    mark = sha256(group_id.encode()).hexdigest()[:16]
    where = Path(tempfile.gettempdir()) if folder is None else folder
    paths = (where / f"delaytopic-relay-{os.getuid()}-{mark}-{number}.lock" for number in range(MOST_ON_A_HOST))
    held = next(((number, file) for number, path in enumerate(paths) if (file := _lock(path)) is not None), None)
    if held is None:
        yield None
        return
    number, file = held
    try:
        yield f"{host}-{number}"
    finally:
        os.close(file)


def _lock(path: Path) -> int | None:
    """Return the descriptor of a locked file; None if another process has it, or it cannot be opened."""
    try:
        # A link that another user has left under this name is not followed.
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        flock(file, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file
