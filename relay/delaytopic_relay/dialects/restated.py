"""The header of what a relay writes into its own source again: which record that stands for, when it is due, and which
offset it counts as among the commands of its id.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from delaytopic_api.records import RESTATED
from delaytopic_relay.dialects.writing import Sending

_FORM: Final = re.compile(rb"([0-9]{0,15}):[0-9]{1,10}:[0-9]{1,19}:([0-9]{1,18}):[a-zA-Z0-9._-]{1,249}")


class Restated(NamedTuple):
    """The due time and the rank that a relay has written; without a due time it withdraws."""

    due_ms: int | None
    rank: int


def restated_header(due_ms: int | None, rank: int, offset: int, sending: Sending) -> tuple[str, bytes | None]:
    """Return the header of what stands for the record at an offset."""
    due = b"%d" % due_ms if due_ms is not None else b""
    return RESTATED, b"%b:%d:%d:%d:%b" % (due, sending.partition, offset, rank, sending.source.encode())


def read_restated(text: bytes | None, offset: int) -> Restated | None:
    """Read the header of the record at an offset; None for one that no relay can have written.

    Somebody else may have written one: a rank counts below the record's own offset alone.
    """
    found = _FORM.fullmatch(text) if text is not None else None
    if found is None or int(found[2]) >= offset:
        return None
    return Restated(int(found[1]) if found[1] else None, int(found[2]))
