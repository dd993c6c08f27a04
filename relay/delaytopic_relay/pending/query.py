"""The query of `GET /pending?dueBefore=...&limit=...&partition=...`. Pure."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl

from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED
from delaytopic_relay.errors import BadRequest

LATEST_MS = 253_402_300_800_000
"""The year 10000: no record is due after it."""
LARGEST_PARTITION = (1 << 31) - 1


class PendingQuery(NamedTuple):
    """The first `limit` records that are due before a time, of one source partition or of all."""

    due_before_ms: int = LATEST_MS
    limit: int = DEFAULT_LIMIT
    partition: int | None = None

    @property
    def asked_before_ms(self) -> int | None:
        """The time that was asked for, if one was."""
        return None if self.due_before_ms == LATEST_MS else self.due_before_ms


def parse_query(text: str) -> PendingQuery:
    """Read the part of the address behind the question mark. Raises `BadRequest`."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name not in ("dueBefore", "limit", "partition"):
            raise BadRequest(f"{name[:80]!r} is no parameter of this page; there are dueBefore, limit and partition")
        if name in given:
            raise BadRequest(f"{name} is given twice")
        given[name] = value
    partition = given.get("partition")
    return PendingQuery(
        _number("dueBefore", given.get("dueBefore", str(LATEST_MS)), 0, LATEST_MS, "epoch milliseconds"),
        _number("limit", given.get("limit", str(DEFAULT_LIMIT)), 0, MOST_LISTED, "a number of records"),
        None if partition is None else _number("partition", partition, 0, LARGEST_PARTITION, "a source partition"),
    )


def _number(name: str, text: str, least: int, most: int, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise BadRequest(f"{name}={text[:80]!r}: it is {what}, from {least} to {most}")
    return int(text)
