"""The documents of dead letters. Times are epoch milliseconds. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import Field

from delaytopic_api.documents.model import Model
from delaytopic_api.relay import PendingContent, text_or_base64
from delaytopic_gateway.client.dead_letters import Outcome, Place, StoredRecord, own_headers
from delaytopic_gateway.client.new_records import Timing
from delaytopic_gateway.client.time_text import duration
from delaytopic_gateway.documents import Span, Time, time_ms
from delaytopic_gateway.kafka.window import LONGEST_CURSOR, Letter, LetterPage, cursor_text
from delaytopic_process.errors import InputError

MOST_LETTERS: Final = 1_000
"""The most dead letters of a page."""
MOST_PLACES: Final = 100
"""The number that one request names at most."""
MOST_TOLD: Final = 100
"""Dead letters that are told one by one, as sent or as incomplete."""
MOST_REASONS: Final = 20
_TOKEN: Final = "^[a-z][a-z-]{0,63}$"
Reason = Annotated[str, Field(pattern=_TOKEN, examples=["malformed-header"])]
"""A token, as relays write them."""
PlaceText = Annotated[str, Field(pattern="^[0-9]{1,9}:[0-9]{1,18}$", examples=["0:17"])]
"""Partition and offset in the dead-letter topic."""


class DeadLetterDocument(Model):
    """A record that could not be delivered."""

    place: str
    """Its partition and offset in the dead-letter topic."""
    at_ms: int
    """The time at which the relay gave it up."""
    reason: str
    """A word for programs."""
    detail: str | None = None
    """A sentence for people. It may quote headers."""
    source_partition: int
    """The partition of the source topic that it came from."""
    source_offset: int
    """Its offset there."""
    key: str | None = None
    """The beginning of its key, up to 1,024 bytes; null for a null key, or one that is no UTF-8 text."""
    key_base64: str | None = None
    """The beginning of its key when that is no UTF-8 text."""
    key_bytes: int | None = None
    """The size of its whole key; null for a null key."""
    value_bytes: int | None = None
    """The size of its value; null for a null value."""
    omitted_bytes: int | None = None
    """The size of a value that the relay left out, as it was too large for the dead-letter topic, too."""
    source_until: str | None = None
    """The time until which the source topic keeps such a value: an instant, or unlimited; null where that is not
    known."""
    sent_again: bool | None = None
    """True if it was sent again; null where the gateway may not know."""
    cannot_be_sent: str | None = None
    """The reason why it cannot be sent again from here; null if it can, and in lists."""
    content: PendingContent | None = None
    """Its content, with the headers that its producer wrote; null in lists."""


class DeadLetterPage(Model):
    """Dead letters of a DelayTopic, the newest first."""

    dead_letters: list[DeadLetterDocument]
    """The newest that were asked for."""
    reasons: dict[str, int]
    """The number for each reason, among those that were looked at."""
    looked_at: int
    """The number of offsets of the dead-letter topic that were looked at."""
    next: str | None
    """Give it as `after` for older ones; null when there are none."""
    complete: bool
    """True if all dead letters of this DelayTopic were counted."""
    notes: list[str]
    """Remarks on parts that are left out, with the reason."""


class DeadLetterSelection(Model):
    """The dead letters that are listed."""

    reason: list[str] = Field([], max_length=MOST_REASONS)
    """The reasons of those that are listed. Repeatable."""
    after: Annotated[str | None, Field(max_length=LONGEST_CURSOR, pattern=r"^[0-9]{1,19}(\.[0-9]{1,19})*$")] = None
    """Older than a page: its `next`."""
    limit: Annotated[int, Field(ge=1, le=MOST_LETTERS)] = 100
    """The newest so many."""


class Resend(Model):
    """Dead letters to send again: by their places, those of some reasons, or all. What was sent before is left out."""

    places: list[PlaceText] = Field([], max_length=MOST_PLACES)
    """These, together or none."""
    reasons: list[Reason] = Field([], max_length=MOST_REASONS)
    """All of these reasons."""
    all: bool = False
    """All."""
    deliver_at: Time | None = None
    """The times at which they are due, in place of their own times."""
    deliver_after: Span | None = None
    """The time from now until they are due, in place of their own times."""
    dry_run: bool = False
    """Count what would be sent, and send nothing."""

    def chosen_places(self) -> list[Place] | None:
        """Return the places; None for a choice by reasons. Raises `InputError`."""
        if sum(map(bool, (self.places, self.reasons, self.all))) != 1:
            raise InputError("give one of places, reasons, and all: true")
        return [Place.parse(place) for place in self.places] or None

    def timing(self) -> Timing | None:
        """Return the new time; None for their own. Raises `InputError`."""
        if self.deliver_at is not None and self.deliver_after is not None:
            raise InputError("deliverAt and deliverAfter are given: one of them is enough")
        if self.deliver_at is not None:
            return Timing(at_ms=time_ms("deliverAt", self.deliver_at))
        return Timing(after=duration(self.deliver_after)) if self.deliver_after is not None else None


class NotSent(Model):
    """A dead letter that cannot be sent again from here."""

    place: str
    """Its partition and offset in the dead-letter topic."""
    reason: str
    """The reason, as a sentence for people."""


class ResendResult(Model):
    """The outcome of sending again. Kafka has the records."""

    source: str
    """The topic that they were sent to: the one that they came from."""
    sent: int
    """The number of dead letters that were sent, or would be with a dry run."""
    places: list[str]
    """The first of them, by partition and offset in the dead-letter topic."""
    sent_before: list[str]
    """Places that were named, and left out, as they were sent before."""
    incomplete: list[NotSent]
    """The first that were left out, as they lack a part."""
    incomplete_count: int
    """The number that was left out for that."""
    from_first: bool
    """True if no earlier sending is remembered."""
    complete: bool
    """True if the end was reached; else the same request goes on."""
    dry_run: bool
    """True if nothing was sent."""


def is_token(reason: str) -> bool:
    """Tell whether it is a reason that may be asked for; others can be made up by whoever writes to the topic."""
    return re.fullmatch(_TOKEN, reason) is not None


def letter_document(letter: Letter, *, with_contents: bool) -> DeadLetterDocument:
    """Return a dead letter of a list."""
    facts = letter.said
    document = DeadLetterDocument(
        place=str(letter.place),
        at_ms=facts.at_ms,
        reason=facts.reason,
        source_partition=facts.partition,
        source_offset=facts.offset,
        sent_again=letter.sent_again,
    )
    if not with_contents:
        return document
    key, key_base64 = text_or_base64(letter.key)
    return document.model_copy(
        update={
            "detail": facts.detail,
            "key": key,
            "key_base64": key_base64,
            "key_bytes": letter.key_bytes,
            "value_bytes": letter.value_bytes,
            "omitted_bytes": facts.omitted_bytes,
            "source_until": facts.source_until,
        }
    )


def letter_page(page: LetterPage, notes: Sequence[str], *, with_contents: bool) -> DeadLetterPage:
    """Return a page of dead letters."""
    return DeadLetterPage(
        dead_letters=[letter_document(letter, with_contents=with_contents) for letter in page.letters],
        reasons=_counts(page.counts.items()),
        looked_at=page.looked_at,
        next=cursor_text(page.older),
        complete=page.is_whole,
        notes=[*notes],
    )


def content_document(record: StoredRecord) -> PendingContent:
    """Return what a dead letter holds, with the headers of the record that it was."""
    headers = own_headers(record.headers or [], record.letter)
    return PendingContent.of(record.key, record.value, headers, record.timestamp_ms)


def resend_result(source: str, outcome: Outcome, *, dry_run: bool) -> ResendResult:
    """Return what was sent."""
    told = [NotSent(place=str(place), reason=why) for place, why in [*outcome.incomplete.items()][:MOST_TOLD]]
    return ResendResult(
        source=source,
        sent=len(outcome.sent),
        places=[*map(str, outcome.sent[:MOST_TOLD])],
        sent_before=[str(place) for place in sorted(outcome.sent_before)],
        incomplete=told,
        incomplete_count=len(outcome.incomplete),
        from_first=outcome.from_first,
        complete=outcome.complete,
        dry_run=dry_run,
    )


def _counts(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the most frequent reasons; whoever writes to the topic can make up any number of them."""
    return dict(sorted(counts, key=lambda each: (-each[1], each[0]))[:MOST_REASONS])
