"""Dead letters: the record that each was, the lines that show it, and what has been sent again. Pure."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
from delaytopic_api.values import is_reserved
from delaytopic_gateway.client.sending import Timing, time_headers
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_gateway.client.watching import preview
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
_KEY_WIDTH = 20
_LONGEST_DETAIL = 300
_LONGEST_REASON = 40
_REASONS_COUNTED = 20


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
    """A dead letter as it is produced again. `partition` is the one that it came from; None: by its key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Choice:
    """The dead letters to send again: those of some reasons, or all without any; and how they are changed.

    With `source`, only those that came from this topic: others share the dead-letter topic.
    """

    reasons: frozenset[str] = frozenset()
    to: str | None = None
    timing: Timing | None = None
    source: str | None = None

    def takes(self, letter: DeadLetter | None) -> bool:
        """Tell whether a record is chosen. One that says no reason is, where no reason is asked for."""
        if not self.is_of_source(letter):
            return False
        return not self.reasons or (letter is not None and letter.reason in self.reasons)

    def is_of_source(self, letter: DeadLetter | None) -> bool:
        """Tell whether a record is one that may be chosen, whatever its reason."""
        return self.source is None or (letter is not None and letter.topic == self.source)


def second_sending(record: StoredRecord, choice: Choice, dead_letter_topic: str) -> SecondSending:
    """Return the record that a dead letter was; raises InputError where it is not known whither to send it."""
    letter = record.letter
    topic = choice.to or (letter.topic if letter is not None else None)
    if topic is None:
        raise InputError(f"{record.place} does not say from which topic it came; name it with --to")
    if is_reserved(topic) or topic == dead_letter_topic:
        raise InputError(f"{record.place} would go to {topic}, which is no source topic; name one with --to")
    headers = own_headers(record.headers or [], letter)
    if choice.timing is not None:
        headers = [header for header in headers if header[0] not in _TIMES] + time_headers(choice.timing)
    partition = letter.partition if letter is not None and letter.topic == topic else None
    return SecondSending(topic, partition, record.key, record.value, headers)


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
    """The dead letters of a partition that were sent again: the committed offset and its metadata.

    All below `offset` were. So were those that a scope of `further` takes, below its offset: a reason, a source topic,
    or a reason of a source topic. `places` are the offsets of single ones.
    """

    offset: int = 0
    further: Mapping[str, int] = field(default_factory=dict)
    places: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, offset: int, metadata: str | None) -> Self:
        """Return what `metadata` describes; raises InputError for what is not written here."""
        try:
            further = json.loads(metadata or "{}")
            steps = further.pop(_PLACES, [])
            if all(type(each) is int for each in (*further.values(), *steps)):
                return cls(offset, further, frozenset(accumulate(steps)))
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        raise InputError(f"the offsets of this command's consumer group are not its own: {str(metadata)[:200]}")

    @property
    def metadata(self) -> str:
        """The text to commit beside the offset; each place is the step from the one before."""
        places = sorted(self.places)
        steps = [place - before for before, place in pairwise([0, *places])]
        document = {**self.further, **({_PLACES: steps} if steps else {})}
        return json.dumps(document, sort_keys=True, separators=(",", ":")) if document else ""

    @property
    def end(self) -> int:
        """The offset from which on nothing was sent."""
        return max(self.offset, *self.further.values(), *(place + 1 for place in self.places), 0)

    def start(self, choice: Choice) -> int:
        """Return the offset from which on some of what is chosen may not be sent."""
        whole = self.further.get(_scope(choice.source), 0) if choice.source is not None else 0
        single = [
            max(self.further.get(reason, 0), self.further.get(_scope(choice.source, reason), 0))
            for reason in choice.reasons
        ]
        return max(self.offset, whole, min(single, default=0))

    def covers(self, offset: int, letter: DeadLetter | None) -> bool:
        """Tell whether a dead letter was sent again."""
        if offset < self.offset or offset in self.places:
            return True
        if letter is None:
            return False
        scopes = letter.reason, _scope(letter.topic), _scope(letter.topic, letter.reason)
        return any(offset < self.further.get(scope, 0) for scope in scopes)

    def advanced(self, offset: int, choice: Choice, passed: Iterable[int] = ()) -> Progress:
        """Return the progress once all that is chosen below an offset is sent, too.

        `passed` are places below it that were chosen: they need no memory of their own any more.
        """
        if choice.reasons:
            scopes = [_scope(choice.source, reason) for reason in choice.reasons]
        else:
            scopes = [_scope(choice.source)] if choice.source is not None else []
        rest = self.offset if scopes else max(offset, self.offset)
        known = {**self.further, **{scope: max(offset, self.further.get(scope, 0)) for scope in scopes}}
        return self._kept(rest, known, self.places.difference(passed))

    def with_places(self, offsets: Iterable[int]) -> Progress:
        """Return the progress once these are sent, too."""
        return self._kept(self.offset, self.further, self.places.union(offsets))

    @staticmethod
    def _kept(rest: int, further: Mapping[str, int], places: frozenset[int]) -> Progress:
        kept = {scope: end for scope, end in further.items() if end > max(rest, *_ends_around(scope, further), 0)}
        return Progress(rest, kept, frozenset(place for place in places if place >= rest))


_PLACES = "#"
_SOURCE_MARK = "@"


@lru_cache(maxsize=1_024)
def _scope(source: str | None, reason: str = "") -> str:
    """Return the name under which progress is kept. A topic has a short one: metadata of an offset is small."""
    if source is None:
        return reason
    digest = urlsafe_b64encode(blake2b(source.encode(), digest_size=9).digest()).decode("ascii")
    return f"{_SOURCE_MARK}{digest} {reason}".rstrip()


def _ends_around(scope: str, further: Mapping[str, int]) -> Iterator[int]:
    """Yield the ends of the scopes that hold everything that this one holds."""
    source, _, reason = scope.partition(" ")
    if source.startswith(_SOURCE_MARK) and reason:
        yield from (further.get(wider, 0) for wider in (source, reason))


def table_head() -> str:
    """Return the columns' names."""
    return _TABLE.format("PLACE", "WHEN", "REASON", "BYTES", "KEY", "SOURCE", "DETAIL")


def table_line(record: StoredRecord, *, now_ms: int) -> str:
    """Return one dead letter in one line, parts of bounded width. A dash stands for what the record does not say."""
    letter = record.letter
    return _TABLE.format(
        str(record.place),
        clock_text(letter.at_ms if letter else record.timestamp_ms, now_ms=now_ms),
        shown_reason(record),
        "-" if record.value is None else f"{len(record.value):,}",
        preview(record.key, limit=_KEY_WIDTH),
        _source(letter) or "-",
        preview(letter.detail.encode(), limit=_LONGEST_DETAIL) if letter else "not written by a relay",
    )


_TABLE = f"{{:<10}}  {{:<23}}  {{:<21}}  {{:>9}}  {{:<{_KEY_WIDTH}}}  {{}}  {{}}"


def shown_reason(record: StoredRecord) -> str:
    """Return the reason in a bounded width; a dash for a record that has none."""
    return preview(record.letter.reason.encode(), limit=_LONGEST_REASON) if record.letter else "-"


def summary(counts: Counter[str]) -> str:
    """Return the last line of a list: how many there are of each reason as shown, the most frequent first."""
    told = [f"{count:,} {reason}" for reason, count in counts.most_common(_REASONS_COUNTED)]
    more = ["..."] if len(counts) > _REASONS_COUNTED else []
    return ": ".join([dead_letters_text(counts.total()), *([", ".join(told + more)] if told else [])])


def dead_letters_text(count: int) -> str:
    """Return a number of dead letters in words."""
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"


def json_line(record: StoredRecord) -> str:
    """Return one dead letter with all of its parts as one line of JSON; what is not UTF-8 is in base64."""
    letter = record.letter
    document = {
        "partition": record.place.partition,
        "offset": record.place.offset,
        "timestampMs": record.timestamp_ms,
        "atMs": letter.at_ms if letter else None,
        "reason": letter.reason if letter else None,
        "detail": letter.detail if letter else None,
        "source": _source(letter),
        "omittedBytes": letter.omitted_bytes if letter else None,
        "sourceUntil": letter.source_until if letter else None,
        **_content("key", record.key),
        **_content("value", record.value),
        "headers": [{"name": name, **_content("value", value)} for name, value in record.headers or ()],
    }
    return json.dumps(document, ensure_ascii=False)


def _source(letter: DeadLetter | None) -> str | None:
    return f"{letter.topic}:{letter.partition}:{letter.offset}" if letter is not None else None


def _content(name: str, content: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if content is None else content.decode(), f"{name}Base64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}Base64": b64encode(content or b"").decode("ascii")}
