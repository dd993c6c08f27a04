"""The newest dead letters of one DelayTopic, as a page: what is kept of each, how they are counted and cut. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate, groupby
from sys import getsizeof
from typing import Final, NamedTuple, Protocol

from delaytopic_api.records import DeadLetter
from delaytopic_api.relay import LONGEST_SHOWN_BYTES
from delaytopic_gateway.access.bounds.pages import PAGE_BYTES
from delaytopic_gateway.client.dead_letters import Choice, Outcome, Place, Progress, StoredRecord
from delaytopic_process.errors import InputError

Before = Mapping[int, int]
"""The offset of each partition below which a page begins."""
LONGEST_CURSOR: Final = 4_096
"""Characters."""
LONGEST_DETAIL: Final = 2_000
LONGEST_REASON: Final = 64
"""The longest reason that is kept; somebody who writes to the topic can make up longer ones."""
LETTER_BYTES: Final = 500
"""The memory that a letter takes, about, beside its texts."""


class Letter(NamedTuple):
    """The part of a dead letter that is kept for a list: neither its value nor its headers."""

    place: Place
    said: DeadLetter
    """The relay's own words on it."""
    key: bytes | None
    """The beginning."""
    key_bytes: int | None
    value_bytes: int | None
    sent_again: bool | None
    """None where nobody knows."""

    @classmethod
    def of(cls, record: StoredRecord, progress: Progress | None) -> Letter | None:
        """Return what is kept of a record; None for one that no relay wrote."""
        said = record.letter
        if said is None:
            return None
        key, value = record.key, record.value
        return cls(
            record.place,
            said._replace(reason=said.reason[:LONGEST_REASON], detail=said.detail[:LONGEST_DETAIL]),
            key[:LONGEST_SHOWN_BYTES] if key is not None else None,
            len(key) if key is not None else None,
            len(value) if value is not None else None,
            progress.covers(record.place.offset, said) if progress is not None else None,
        )

    @property
    def bytes(self) -> int:
        """The memory that it takes, about."""
        return LETTER_BYTES + len(self.key or b"") + getsizeof(self.said.detail)


@dataclass(frozen=True, slots=True)
class Window:
    """The newest records of a dead-letter topic, or those below a page, as far as they were looked at."""

    letters: Sequence[Letter]
    """The letters of one DelayTopic."""
    looked_at: int
    """Offsets, those of other DelayTopics among them."""
    reached: Before
    """The first offset of each partition that was looked at."""
    begins: Before
    """The first offset of each partition that there is."""

    @property
    def is_whole(self) -> bool:
        """Tell whether nothing older is left."""
        return all(self.reached[partition] <= begin for partition, begin in self.begins.items())


Keep = Callable[[StoredRecord, Progress | None], Letter | None]
"""Takes what is needed of a record; None leaves it out."""


class DeadLetterTopics(Protocol):
    """The dead-letter topics of a Kafka."""

    def window(self, topic: str, before: Before | None, keep: Keep) -> Window:
        """Return the newest records, or those below `before`, as far as it is worth to look. Raises `ProgramError`s."""
        ...

    def at(self, topic: str, place: Place) -> tuple[StoredRecord, Progress | None] | None:
        """Return a committed record, and what was sent again of its partition. Raises `ProgramError`s."""
        ...

    def send(self, topic: str, choice: Choice, places: Sequence[Place] | None, *, dry_run: bool) -> Outcome:
        """Send again what is chosen, or at these places, to its source; nothing twice. Raises `ProgramError`s."""
        ...


class LetterPage(NamedTuple):
    """Dead letters, the newest first."""

    letters: Sequence[Letter]
    counts: Mapping[str, int]
    """The numbers of all that were looked at, by reason."""
    looked_at: int
    older: Before | None
    """The beginning of the next page; None when nothing older is left."""
    is_whole: bool
    """True if all were counted."""


def page_of(window: Window, reasons: Set[str], limit: int) -> LetterPage:
    """Return the newest letters of these reasons, or of any without one, as many as have room in an answer.

    Those of one partition are in the order of their offsets; those of several by what relays say of the time.
    """
    wanted = [letter for letter in window.letters if not reasons or letter.said.reason in reasons]
    ordered = sorted(wanted, key=lambda letter: (letter.place.partition, -letter.place.offset))
    rows = [[*rows] for _, rows in groupby(ordered, key=lambda letter: letter.place.partition)]
    newest = list(merge(*rows, key=lambda letter: -letter.said.at_ms))
    room = bisect_right([*accumulate(letter.bytes for letter in newest)], PAGE_BYTES)
    shown, rest = newest[: min(limit, room)], newest[min(limit, room) :]
    older = dict(window.reached)
    for letter in reversed(rest):
        older[letter.place.partition] = letter.place.offset + 1
    counts = Counter(letter.said.reason for letter in window.letters)
    is_last = window.is_whole and not rest
    return LetterPage(shown, counts, window.looked_at, None if is_last else older, window.is_whole)


def cursor_text(before: Before | None) -> str | None:
    """Return where a page begins, for an address."""
    if before is None:
        return None
    return ".".join(str(before.get(partition, 0)) for partition in range(max(before, default=-1) + 1))


def parse_cursor(text: str) -> Before:
    """Return where a page begins. Raises `InputError`."""
    parts = text.split(".")
    if len(text) > LONGEST_CURSOR or not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise InputError("after: it is the `next` of a page")
    return dict(enumerate(map(int, parts)))
