"""PendingList, the JSON that a relay answers `GET /pending` with: what waits, in the order of delivery.

A record's value and its producer's headers only where they were asked for. Times are epoch milliseconds.
"""

from __future__ import annotations

from base64 import b64encode
from codecs import getincrementaldecoder
from collections.abc import Iterable
from typing import Final, Self

from pydantic import ConfigDict

from delaytopic_api.documents.model import Model
from delaytopic_api.relay.status import DueBin, EpochMs, Int64

MOST_LISTED: Final = 10_000
"""Records in one answer at the most."""
LARGEST_ANSWER_BYTES: Final = 4 << 20
"""The bound of the contents in one answer; a single record may be larger. In JSON a byte takes up to six."""
DEFAULT_LIMIT: Final = 100
LONGEST_SHOWN_BYTES: Final = 1_024
"""The longest key that is shown whole; an id is never longer than 256."""


class _Pending(Model):
    # A reader may be older than the relay.
    model_config = ConfigDict(extra="ignore")


class PendingHeader(_Pending):
    """A header as its producer wrote it."""

    name: str
    """Its name; names may repeat."""
    value: str | None = None
    """Its value; null for a null value, or one that is no UTF-8 text."""
    value_base64: str | None = None
    """Its value when that is no UTF-8 text."""


class PendingContent(_Pending):
    """The content of a record, whole."""

    key: str | None = None
    """Its key; null for a null key, or one that is no UTF-8 text."""
    key_base64: str | None = None
    """Its key when that is no UTF-8 text."""
    value: str | None = None
    """Its value; null for a null value, or one that is no UTF-8 text."""
    value_base64: str | None = None
    """Its value when that is no UTF-8 text."""
    headers: list[PendingHeader] = []
    """All headers in their order."""
    timestamp_ms: EpochMs | None = None
    """Its timestamp; null for a record without one."""

    @classmethod
    def of(
        cls,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]],
        timestamp_ms: int | None,
    ) -> Self:
        """Return the content of a record, each part as text or, if it is none, as base64."""
        texts = [text_or_base64(part, None) for part in (key, value)]
        (key_text, key_base64), (value_text, value_base64) = texts
        shown = [(name, *text_or_base64(content, None)) for name, content in headers]
        return cls(
            key=key_text,
            key_base64=key_base64,
            value=value_text,
            value_base64=value_base64,
            headers=[PendingHeader(name=name, value=text, value_base64=encoded) for name, text, encoded in shown],
            timestamp_ms=timestamp_ms,
        )


class PendingRecord(_Pending):
    """One record that waits for its time."""

    due_ms: EpochMs
    """The due time."""
    partition: Int64
    """Its source partition."""
    offset: Int64
    """Its source offset."""
    target: str
    """The topic that it is delivered to."""
    id: str | None = None
    """Its deliver-id; null without one, or when it is no UTF-8 text."""
    id_base64: str | None = None
    """Its deliver-id when that is no UTF-8 text."""
    key: str | None = None
    """The beginning of its key, up to 1,024 bytes; null for a null key, or one that is no UTF-8 text."""
    key_base64: str | None = None
    """The beginning of its key when that is no UTF-8 text."""
    key_bytes: Int64 | None = None
    """The size of its whole key; null for a null key."""
    value_bytes: Int64 | None = None
    """The size of its value; null for a null value."""
    expires_ms: EpochMs | None = None
    """The last instant at which its delivery is of use; null without one."""
    content: PendingContent | None = None
    """Its content; null unless contents were asked for."""


class PendingShard(_Pending):
    """A source partition, and whether the answer speaks of it."""

    partition: Int64
    """Its number."""
    listed: bool
    """True if its records are in this list."""
    pending: Int64 | None = None
    """The number of records that wait there, in the same way; null when this relay does not know."""
    ingested: Int64 | None = None
    """The source offset below which this list takes account of everything; null when it is not listed."""
    message: str | None = None
    """The reason why it is not listed, or not wholly."""


class PendingList(_Pending):
    """The pending records of one relay: counts, due times, and the first of them."""

    relay: str
    """The instance."""
    delay_topic: str
    """`namespace/name`."""
    source: str
    """The source topic."""
    source_partitions: Int64
    """The number of partitions of the source topic."""
    as_of_ms: EpochMs
    """The time of the count."""
    pending: Int64
    """Taken in and not yet delivered, without what is known to be cancelled or replaced."""
    overdue: Int64
    """Due and not yet delivered."""
    next_due_ms: EpochMs | None = None
    """The nearest due time."""
    ingest_lag: Int64
    """Records of the source not yet taken in; they are not listed."""
    due_histogram: list[DueBin] = []
    """Due times ahead, up to the look-ahead."""
    due_before_ms: EpochMs | None = None
    """Only what is due before was asked for; null: everything."""
    limit: Int64
    """The number of records that were asked for."""
    complete: bool
    """True if everything that was asked for and is held here is listed."""
    limited: bool = False
    """True if the limit leaves out further records."""
    listed_until_ms: EpochMs | None = None
    """The time from which on nothing could be listed; null when only the limit, or nothing, ends the list."""
    message: str | None = None
    """The reason why the list is not complete."""
    shards: list[PendingShard] = []
    """The source partitions; those of other relays are not listed here."""
    records: list[PendingRecord] = []
    """The first in the order of (due, partition, offset)."""

    def to_json(self) -> str:
        """Return the answer of `GET /pending`: absent values are null."""
        return self.model_dump_json(by_alias=True)


def text_or_base64(
    content: bytes | None, longest_bytes: int | None = LONGEST_SHOWN_BYTES
) -> tuple[str | None, str | None]:
    """The beginning of a key or id, or with None all of it: as text when it is UTF-8, else as base64.

    Both are None for None.
    """
    if content is None:
        return None, None
    shown = content[:longest_bytes]
    try:
        # A character that the cut went through is left out; one that is broken in itself is no text.
        return getincrementaldecoder("utf-8")().decode(shown, final=len(shown) == len(content)), None
    except UnicodeDecodeError:
        return None, b64encode(shown).decode("ascii")
