"""The bytes of records that one request holds at a time. Pure."""

from __future__ import annotations

from typing import Final

PAGE_BYTES: Final = 1 << 20
"""The bound of the records that one request holds. In JSON a byte takes up to six, and there are several copies."""
LEAST_BYTES: Final = 64 << 10
"""The least page of each of very many relays."""


def share_of_each(relays: int, most_bytes: int = PAGE_BYTES) -> int:
    """Return how much each of so many relays may answer; each answers one record, however large."""
    return max(LEAST_BYTES, most_bytes // max(1, relays))
