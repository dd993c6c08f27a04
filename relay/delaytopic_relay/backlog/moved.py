"""The one message of every shelf for a position that is not the expected one."""

from __future__ import annotations

from delaytopic_relay.backlog.store import Position
from delaytopic_relay.errors import ShelfMoved


def moved(shard: int, expected: Position | None, found: Position | None) -> ShelfMoved:
    """The error for a shard whose position is `found` and not `expected`, with the likeliest reason."""
    return ShelfMoved(
        f"the shelf of shard {shard} is at {_text(found)}, not at {_text(expected)}: {_reason(expected, found)}"
    )


def _text(position: Position | None) -> str:
    if position is None:
        return "no position"
    return f"offset {position.offset} (write {position.counter} of {position.owner})"


def _reason(expected: Position | None, found: Position | None) -> str:
    if found is None:
        return "it was wiped, or it is another server's"
    if expected is None:
        return "it is claimed already"
    if found.owner != expected.owner:
        return "another relay claimed it, or a put was left half done"
    if found.counter < expected.counter:
        return "it lost its last writes"
    return "it took a write that this relay does not know of"
