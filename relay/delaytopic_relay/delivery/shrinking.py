"""A guess at what compression makes of a value, before Kafka judges."""

from __future__ import annotations

from typing import Final
from zlib import compress

PIECES: Final = 8
PIECE_BYTES: Final = 32 << 10
"""The distance that zlib looks back."""


def shrunk_bytes(value: bytes) -> int:
    """Return about how large a value is once zlib has compressed it, by pieces from the whole of it."""
    step = max(PIECE_BYTES, len(value) // PIECES)
    pieces = b"".join(value[start : start + PIECE_BYTES] for start in range(0, len(value), step)[:PIECES])
    return len(value) * len(compress(pieces, level=1)) // max(1, len(pieces))


def may_shrink_to(value: bytes, limit: int) -> bool:
    """Return whether a codec of Kafka may make a value as small as this; a wrong yes costs an aborted transaction.

    Where zlib halves it another codec may do far better, and only Kafka can tell; what zlib does not halve (pictures,
    encrypted or compressed data) no other makes much smaller than zlib does.
    """
    return (shrunk := shrunk_bytes(value)) <= limit or 2 * shrunk <= len(value)
