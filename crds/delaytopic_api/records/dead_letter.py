"""The dead letter: what a relay appends to a record that it cannot deliver, and how to read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from delaytopic_api.errors import MalformedHeader
from delaytopic_api.records.headers import (
    DEAD_LETTER_AT,
    DEAD_LETTER_DETAIL,
    DEAD_LETTER_REASON,
    DEAD_LETTER_SOURCE,
    DEAD_LETTER_SOURCE_UNTIL,
    DEAD_LETTER_VALUE_OMITTED,
    Headers,
)

_SOURCE = re.compile(rb"([a-zA-Z0-9._-]{1,249}):([0-9]{1,10}):([0-9]{1,19})")
_NUMBER = re.compile(rb"[0-9]{1,19}")


class DeadLetterReason(StrEnum):
    """The reason of a dead letter; the value of the `dead-letter-reason` header."""

    MALFORMED_HEADER = "malformed-header"
    MALFORMED_VALUE = "malformed-value"
    MALFORMED_KEY = "malformed-key"
    CONTRADICTORY_HEADERS = "contradictory-headers"
    UNSUPPORTED = "unsupported"
    UNKNOWN_ACTION = "unknown-action"
    BEYOND_MAX_DELAY = "beyond-max-delay"
    FORBIDDEN_TARGET = "forbidden-target"
    UNKNOWN_TARGET = "unknown-target"
    TARGET_UNAVAILABLE = "target-unavailable"
    EXPIRED = "expired"
    TOO_LARGE = "too-large"
    TOO_MANY_HEADERS = "too-many-headers"
    TOO_MANY_IDS = "too-many-ids"
    TOO_MANY_REDELIVERIES = "too-many-redeliveries"
    REFUSED_BY_KAFKA = "refused-by-kafka"


class DeadLetter(NamedTuple):
    """Reason, origin and time; `omitted_bytes` is the size of a value that the dead-letter topic refused, too.

    `source_until` says until when the source keeps that value, as its header does; None where nobody knows.
    """

    reason: str
    """A token of `DeadLetterReason`, or one of a newer relay."""
    detail: str
    topic: str
    partition: int
    offset: int
    at_ms: int
    omitted_bytes: int | None = None
    source_until: str | None = None


def dead_letter_headers(letter: DeadLetter) -> Headers:
    """The headers to append to the record's own."""
    headers: Headers = [
        (DEAD_LETTER_REASON, letter.reason.encode()),
        (DEAD_LETTER_DETAIL, letter.detail.encode()),
        (DEAD_LETTER_SOURCE, f"{letter.topic}:{letter.partition}:{letter.offset}".encode()),
        (DEAD_LETTER_AT, b"%d" % letter.at_ms),
    ]
    if letter.omitted_bytes is not None:
        headers.append((DEAD_LETTER_VALUE_OMITTED, b"%d" % letter.omitted_bytes))
    if letter.source_until is not None:
        headers.append((DEAD_LETTER_SOURCE_UNTIL, letter.source_until.encode()))
    return headers


def parse_dead_letter(headers: Sequence[tuple[str, bytes | None]] | None) -> DeadLetter | None:
    """Return what the relay appended last, or None if this is no dead letter. Raises `MalformedHeader`.

    A dead letter that was sent again and failed again carries two sets of headers: only what follows the last
    reason counts.
    """
    headers = headers or ()
    reasons = [place for place, (name, _) in enumerate(headers) if name == DEAD_LETTER_REASON]
    if not reasons:
        return None
    last = dict(headers[reasons[-1] :])
    whence = last.get(DEAD_LETTER_SOURCE) or b""
    source = _SOURCE.fullmatch(whence)
    if source is None:
        raise MalformedHeader(f"{whence!r} is not a {DEAD_LETTER_SOURCE}: <topic>:<partition>:<offset>")
    topic, partition, offset = source.groups()
    return DeadLetter(
        reason=_text(last, DEAD_LETTER_REASON),
        detail=_text(last, DEAD_LETTER_DETAIL),
        topic=topic.decode("ascii"),
        partition=int(partition),
        offset=int(offset),
        at_ms=_number(last, DEAD_LETTER_AT),
        omitted_bytes=_number(last, DEAD_LETTER_VALUE_OMITTED) if DEAD_LETTER_VALUE_OMITTED in last else None,
        source_until=_text(last, DEAD_LETTER_SOURCE_UNTIL) if DEAD_LETTER_SOURCE_UNTIL in last else None,
    )


def _text(headers: dict[str, bytes | None], name: str) -> str:
    return (headers.get(name) or b"").decode("utf-8", "replace")


def _number(headers: dict[str, bytes | None], name: str) -> int:
    value = headers.get(name) or b""
    if _NUMBER.fullmatch(value) is None:
        raise MalformedHeader(f"{value!r} is not a {name}: a whole number")
    return int(value)
