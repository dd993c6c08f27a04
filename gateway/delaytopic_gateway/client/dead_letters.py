"""Dead letters: the record that each was, the lines that show it, and what has been sent again. Pure."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import NamedTuple, Self

from delaytopic_api import MalformedHeader
from delaytopic_api.records import (
    DEAD_LETTER_AT,
    DEAD_LETTER_DETAIL,
    DEAD_LETTER_REASON,
    DEAD_LETTER_SOURCE,
    DEAD_LETTER_SOURCE_UNTIL,
    DEAD_LETTER_VALUE_OMITTED,
    DELIVER_AFTER,
    DELIVER_AT,
    DELIVER_EXPIRES_AT,
    UNLIMITED,
    DeadLetter,
    Headers,
    parse_dead_letter,
)
from delaytopic_gateway.client.new_records import Timing, time_headers
from delaytopic_process.errors import InputError

_PLACE = re.compile(r"([0-9]{1,9}):([0-9]{1,18})", re.ASCII)
_GIVEN = frozenset(
    {
        DEAD_LETTER_REASON,
        DEAD_LETTER_DETAIL,
        DEAD_LETTER_SOURCE,
        DEAD_LETTER_AT,
        DEAD_LETTER_VALUE_OMITTED,
        DEAD_LETTER_SOURCE_UNTIL,
    }
)
_TIMES = frozenset({DELIVER_AT, DELIVER_AFTER, DELIVER_EXPIRES_AT})
# Some dialects put words of their own between the record's headers and those above.
_OF_TIMEBRIDGE = ("X-Timebridge-Error",)
_OF_CESIUM = ("cesium-error-reason", "cesium-error-detail", "cesium-relayed-at", "cesium-source-topic",
              "cesium-source-partition", "cesium-source-offset", "cesium-source-timestamp")  # fmt: skip
_WORDS_OF_DIALECTS = (_OF_TIMEBRIDGE, _OF_CESIUM, _OF_CESIUM[:-1])
# The end of a relay's detail where it had to leave the headers out.
_HEADERS_MISSING = "the record in the source topic has them"
_KASPR_REJECTION = {"key", "value", "headers", "errors"}


class Place(NamedTuple):
    """A partition and offset of the dead-letter topic."""

    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place that `3:1234` names; raises InputError."""
        match = _PLACE.fullmatch(text)
        if match is None:
            raise InputError(f'"{text}" is not PARTITION:OFFSET, such as 0:17; dead-letters list shows them')
        return cls(int(match[1]), int(match[2]))


class StoredRecord(NamedTuple):
    """A record of a dead-letter topic as it was read. `headers` is None where the Kafka client cannot read them."""

    place: Place
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None

    @property
    def letter(self) -> DeadLetter | None:
        """The headers that a relay wrote last; None where they cannot be read, or no relay wrote the record."""
        try:
            return parse_dead_letter(self.headers)
        except MalformedHeader:
            return None


class SecondSending(NamedTuple):
    """A dead letter as it is produced again. `partition` None: by its key, as the one that it came from is gone."""

    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Choice:
    """The dead letters to send again: those that came from a source topic, of some reasons or all without any.

    Others share the dead-letter topic. `timing` takes the place of their own times.
    """

    source: str
    reasons: frozenset[str] = frozenset()
    timing: Timing | None = None

    def takes(self, letter: DeadLetter | None) -> bool:
        """Tell whether a record is chosen; one that no relay wrote never is."""
        return self.is_of_source(letter) and (
            not self.reasons or (letter is not None and letter.reason in self.reasons)
        )

    def is_of_source(self, letter: DeadLetter | None) -> bool:
        """Tell whether a record is one that may be chosen, whatever its reason."""
        return letter is not None and letter.topic == self.source


def second_sending(record: StoredRecord, choice: Choice, partitions: int) -> SecondSending:
    """Return the record that a dead letter was, for a source topic of so many partitions."""
    letter = record.letter
    assert letter is not None, "one that is chosen names its source"
    headers = own_headers(record.headers or [], letter)
    if choice.timing is not None:
        headers = [header for header in headers if header[0] not in _TIMES] + time_headers(choice.timing)
    partition = letter.partition if letter.partition < partitions else None
    return SecondSending(partition, record.key, record.value, headers)


def own_headers(headers: Headers, letter: DeadLetter | None) -> Headers:
    """Return the headers without those that the last relay appended. Those of an earlier dead letter stay."""
    reasons = [place for place, (name, _) in enumerate(headers) if name == DEAD_LETTER_REASON]
    if not reasons:
        return headers
    own, appended = headers[: reasons[-1]], headers[reasons[-1] :]
    if letter is not None:
        own = own[: len(own) - _words_of_a_dialect(own, letter.detail.encode())]
    return own + [header for header in appended if header[0] not in _GIVEN]


def _words_of_a_dialect(headers: Headers, detail: bytes) -> int:
    """Return how many of the last headers a dialect appended: its names, and in one of them the same detail."""
    for names in _WORDS_OF_DIALECTS:
        last = headers[-len(names) :]
        if tuple(name for name, _ in last) == names and any(value == detail for _, value in last):
            return len(names)
    return 0


def missing_part(record: StoredRecord) -> str | None:
    """Return what a dead letter lacks of the record that it was, for which it cannot be sent again; None: nothing."""
    letter = record.letter
    if record.headers is None:
        return "it has a header name that is not UTF-8, so that its headers cannot be read"
    if letter is None:
        return None
    at = f"the source topic has the record, at {_source(letter)}"
    if letter.omitted_bytes is not None:
        return f"its value of {letter.omitted_bytes:,} bytes was left out; {at}{_kept(letter.source_until)}"
    if own_headers(record.headers, letter):
        return None
    if letter.detail.endswith(_HEADERS_MISSING):
        return f"its headers were left out; {at}"
    if _is_kaspr_rejection(record.value, letter.detail):
        return f"it is a rejection as Kaspr writes it, without the scheduler's headers; {at}"
    return None


def _kept(until: str | None) -> str:
    if until is None:
        return ""
    return ", for ever" if until == UNLIMITED else f", until {until}"


def _is_kaspr_rejection(value: bytes | None, detail: str) -> bool:
    if value is None or not value.startswith(b"{"):
        return False
    try:
        document = json.loads(value)
        return document.keys() == _KASPR_REJECTION and "; ".join(document["errors"]) == detail
    except (ValueError, TypeError, RecursionError):
        return False


@dataclass(frozen=True, slots=True)
class Progress:
    """The dead letters of a partition that were sent again: the metadata that is committed with an offset.

    All that a scope of `ends` takes, below its offset, were: a source topic, or a reason of one. `places` are the
    offsets of single ones.
    """

    ends: Mapping[str, int] = field(default_factory=dict)
    places: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, metadata: str | None) -> Self:
        """Return what `metadata` describes; raises InputError for what is not written here."""
        try:
            ends = json.loads(metadata or "{}")
            steps = ends.pop(_PLACES, [])
            if all(type(each) is int for each in (*ends.values(), *steps)):
                return cls(ends, frozenset(accumulate(steps)))
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InputError(f"the offsets of this command's consumer group are not its own: {str(metadata)[:200]}")

    @property
    def metadata(self) -> str:
        """The text to commit beside the offset; each place is the step from the one before."""
        places = sorted(self.places)
        steps = [place - before for before, place in pairwise([0, *places])]
        document = {**self.ends, **({_PLACES: steps} if steps else {})}
        return json.dumps(document, sort_keys=True, separators=(",", ":")) if document else ""

    @property
    def end(self) -> int:
        """The offset from which on nothing was sent."""
        return max([*self.ends.values(), *(place + 1 for place in self.places)], default=0)

    def start(self, choice: Choice) -> int:
        """Return the offset from which on some of what is chosen may not be sent."""
        single = [self.ends.get(_scope(choice.source, reason), 0) for reason in choice.reasons]
        return max(self.ends.get(_scope(choice.source), 0), min(single, default=0))

    def covers(self, offset: int, letter: DeadLetter | None) -> bool:
        """Tell whether a dead letter was sent again."""
        if letter is None:
            return False
        scopes = _scope(letter.topic), _scope(letter.topic, letter.reason)
        return offset in self.places or any(offset < self.ends.get(scope, 0) for scope in scopes)

    def advanced(self, offset: int, choice: Choice, passed: Iterable[int] = ()) -> Progress:
        """Return the progress once all that is chosen below an offset is sent, too.

        `passed` are places below it that were chosen: they need no memory of their own any more.
        """
        scopes = [_scope(choice.source, reason) for reason in choice.reasons] or [_scope(choice.source)]
        known = {**self.ends, **{scope: max(offset, self.ends.get(scope, 0)) for scope in scopes}}
        kept = {scope: end for scope, end in known.items() if end > known.get(_wider(scope), 0)}
        return Progress(kept, self.places.difference(passed))

    def with_places(self, offsets: Iterable[int]) -> Progress:
        """Return the progress once these are sent, too."""
        return Progress(self.ends, self.places.union(offsets))


@dataclass(slots=True)
class Outcome:
    """The dead letters whose transaction is committed, and those that lack a part.

    `in_doubt` is the number of those in a transaction of which it is not known whether it is committed.
    """

    sent: list[Place] = field(default_factory=list)
    incomplete: dict[Place, str] = field(default_factory=dict)
    in_doubt: int = 0
    from_first: bool = False
    """True where no earlier sending is remembered."""
    sent_before: list[Place] = field(default_factory=list)
    """The places that were named, and sent by an earlier call."""
    complete: bool = True
    """False where it ended before the end, as it was told to: the same call goes on."""

    @property
    def certain(self) -> str:
        """Tell what was sent, when an error has ended it."""
        perhaps = f" and perhaps {self.in_doubt:,} more" if self.in_doubt else ""
        return f"sent again for certain: {dead_letters_text(len(self.sent))}{perhaps}"


_PLACES = "#"


@lru_cache(maxsize=1_024)
def _scope(source: str, reason: str = "") -> str:
    """Return the name under which progress is kept. A topic has a short one: metadata of an offset is small."""
    digest = urlsafe_b64encode(blake2b(source.encode(), digest_size=9).digest()).decode("ascii")
    return f"{digest} {reason}".rstrip()


def _wider(scope: str) -> str:
    """Return the scope that holds everything that this one holds; empty for that of a source topic."""
    source, _, reason = scope.partition(" ")
    return source if reason else ""


def dead_letters_text(count: int) -> str:
    """Return a number of dead letters in words."""
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"


def _source(letter: DeadLetter | None) -> str | None:
    return f"{letter.topic}:{letter.partition}:{letter.offset}" if letter is not None else None
