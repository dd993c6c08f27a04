"""Whose record an outgoing one is, read from its own provenance headers."""

from __future__ import annotations

from delaytopic_api.records import DEAD_LETTER_SOURCE, RECEIPT, Headers


def whose_record(headers: Headers) -> tuple[int | None, int | None, bool]:
    """Source partition, source offset, and whether it is a dead letter; the last such header is ours."""
    for name, value in reversed(headers):
        if value is None:
            continue
        if name == RECEIPT:
            _, shard, offset, _ = value.split(b":", 3)
            return int(shard), int(offset), False
        if name == DEAD_LETTER_SOURCE:
            _, shard, offset = value.rsplit(b":", 2)
            return int(shard), int(offset), True
    return None, None, False
