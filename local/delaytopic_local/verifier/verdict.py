"""Verifying a delay topic from outside: what had to happen, from the source records alone, against what did happen.

Pure: it reads no topic and no clock, and shares no code with the relay whose work it verifies.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from delaytopic_gateway.client.raw_records import Coordinates, Headers

DEFAULT_SETTLE_MS = 1_000


class Fate(StrEnum):
    """The request of a source record, read from the record alone."""

    SCHEDULE = "schedule"
    CANCEL = "cancel"
    DEAD_LETTER = "dead letter"


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A record of the source topic, with what it asks for.

    `due_ms` counts for schedules only; `schedule_id` is None for records without one; `headers` are those that
    must arrive, without control headers; `sent_headers` are all that the producer wrote. `target` is the topic it must
    arrive on, None for any. After `expires_ms` it may, and then must, be a dead letter instead.
    """

    at: Coordinates
    sent_ms: int
    fate: Fate
    due_ms: int = 0
    schedule_id: bytes | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    sent_headers: Headers = ()
    target: str | None = None
    expires_ms: int | None = None


@dataclass(frozen=True, slots=True)
class DeliveredRecord:
    """A record of a target topic. `source`, `due_ms` and `sent_ms` are what its receipt claims.

    `timestamp_ms` is its Kafka timestamp; `headers` are those without the receipt.
    """

    source: Coordinates
    due_ms: int
    sent_ms: int
    timestamp_ms: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic, and the source record that it names.

    `headers` are the producer's, without what the relay appended. `is_shortened`: the whole record did not fit.
    """

    source: Coordinates
    reason: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()
    is_shortened: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """A span without a working relay, from its end to when its successor worked. Epoch milliseconds."""

    start_ms: int
    end_ms: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """The lateness of one delivery: sent minus due, or minus the time it was handed in if that was after due."""

    due_ms: int
    late_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying. Each tuple of coordinates lists faults and is empty in a clean run.

    Counts: `schedules` had been sent; `delivered` arrived at least once; `cancelled` and `replaced` did not arrive
    because of a later command; `dead_lettered` are on the dead-letter topic; `pending` are not due yet.
    """

    schedules: int
    delivered: int
    cancelled: int
    replaced: int
    dead_lettered: int
    pending: int
    lateness: tuple[Lateness, ...] = field(repr=False)
    lost: tuple[Coordinates, ...] = ()
    twice: tuple[Coordinates, ...] = ()
    early: tuple[Coordinates, ...] = ()
    unwanted: tuple[Coordinates, ...] = ()
    unknown: tuple[Coordinates, ...] = ()
    wrong_due: tuple[Coordinates, ...] = ()
    altered: tuple[Coordinates, ...] = ()
    misdirected: tuple[Coordinates, ...] = ()
    dead_letters_missing: tuple[Coordinates, ...] = ()
    dead_letters_unwanted: tuple[Coordinates, ...] = ()
    dead_letters_twice: tuple[Coordinates, ...] = ()
    dead_letters_altered: tuple[Coordinates, ...] = ()

    @property
    def faults(self) -> Mapping[str, tuple[Coordinates, ...]]:
        """The faults that were found, by name; empty when everything is as it had to be."""
        names = (
            *("lost", "twice", "early", "unwanted", "unknown", "wrong_due", "altered", "misdirected"),
            *("dead_letters_missing", "dead_letters_unwanted", "dead_letters_twice", "dead_letters_altered"),
        )
        return {name: found for name in names if (found := getattr(self, name))}

    @property
    def is_clean(self) -> bool:
        """True when nothing at all was wrong."""
        return not self.faults


def verify(
    source: Sequence[SourceRecord],
    delivered: Sequence[DeliveredRecord],
    dead_letters: Sequence[DeadLetter] = (),
    *,
    until_ms: int,
    outages: Sequence[Outage] = (),
    settle_ms: int = DEFAULT_SETTLE_MS,
) -> Verdict:
    """Compare what happened with what had to happen.

    `until_ms`: schedules due later may still be pending. `settle_ms`: a cancel or replacement sent at least so long
    before its schedule was due (time without a relay, `outages`, does not count) has to take effect; one sent
    later races with the delivery, and both outcomes are right.
    """
    arrivals = Counter(record.source for record in delivered)
    letters = Counter(letter.source for letter in dead_letters)
    ends = _endings(source, outages, settle_ms)
    schedules = [record for record in source if record.fate is Fate.SCHEDULE]
    absent = [record for record in schedules if not arrivals[record.at] and not letters[record.at]]
    ended = Counter(ends[record.at].by for record in absent if record.at in ends)
    missing = [record for record in absent if record.at not in ends]
    by_coordinates = {record.at: record for record in source}
    known = [(by_coordinates[record.source], record) for record in delivered if record.source in by_coordinates]
    lateness = (_lateness(*pair) for pair in known if pair[0].fate is Fate.SCHEDULE)
    return Verdict(
        schedules=len(schedules),
        delivered=sum(1 for record in schedules if arrivals[record.at]),
        cancelled=ended[Fate.CANCEL],
        replaced=ended[Fate.SCHEDULE],
        dead_lettered=sum(1 for at in letters if at in by_coordinates),
        pending=sum(1 for record in missing if record.due_ms > until_ms),
        lateness=tuple(sorted(lateness, key=lambda item: item.due_ms)),
        lost=_sorted(record.at for record in missing if record.due_ms <= until_ms),
        twice=_sorted(at for at, count in arrivals.items() if count > 1),
        unknown=_sorted(at for at in arrivals if at not in by_coordinates),
        **_faults_of_arrivals(known, ends),
        **_faults_of_dead_letters(by_coordinates, dead_letters, arrivals),
    )


def out_of_order(
    source: Iterable[SourceRecord], delivered: Sequence[DeliveredRecord], *, caught_up_ms: int
) -> tuple[Coordinates, ...]:
    """Return the deliveries that came after one with a larger (due, source offset) of their source partition.

    `delivered` in the order of one target partition. Only schedules sent before and due after `caught_up_ms`, a
    moment when a relay had taken in everything, have an order to keep: a record that is due before it is
    read goes at once.
    """
    bound = {record.at for record in source if record.sent_ms < caught_up_ms < record.due_ms}
    latest: dict[tuple[str, int], tuple[int, int]] = {}
    found = []
    for record in delivered:
        if record.source not in bound:
            continue
        shard = (record.source.topic, record.source.partition)
        key = (record.due_ms, record.source.offset)
        if key < latest.get(shard, key):
            found.append(record.source)
        latest[shard] = max(key, latest.get(shard, key))
    return tuple(found)


class _Ending(NamedTuple):
    """The later command that ended a schedule, and whether it had to (or only may have)."""

    by: Fate
    is_certain: bool


def _endings(source: Sequence[SourceRecord], outages: Sequence[Outage], settle_ms: int) -> dict[Coordinates, _Ending]:
    """Return, for each schedule, its ending by the next command of its id in its partition.

    A command that came when a working relay must have delivered the schedule already ends nothing.
    """
    chains: defaultdict[tuple[str, int, bytes], list[SourceRecord]] = defaultdict(list)
    for record in source:
        if record.schedule_id is not None and record.fate is not Fate.DEAD_LETTER:
            chains[record.at.topic, record.at.partition, record.schedule_id].append(record)
    endings = {}
    for chain in chains.values():
        chain.sort(key=lambda record: record.at.offset)
        for earlier, later in itertools.pairwise(chain):
            delivered_by_ms = _ingested_by_ms(max(earlier.due_ms, earlier.sent_ms), outages, settle_ms)
            if earlier.fate is Fate.SCHEDULE and later.sent_ms <= delivered_by_ms:
                certain = _ingested_by_ms(later.sent_ms, outages, settle_ms) <= earlier.due_ms
                endings[earlier.at] = _Ending(later.fate, certain)
    return endings


def _faults_of_arrivals(
    known: Sequence[tuple[SourceRecord, DeliveredRecord]], ends: Mapping[Coordinates, _Ending]
) -> dict[str, tuple[Coordinates, ...]]:
    """Return the faults of single arrivals of known source records, by the verdict's field."""
    wanted = [pair for pair in known if pair[0].fate is Fate.SCHEDULE]
    unwanted = (
        before.at
        for before, _ in known
        if before.fate is not Fate.SCHEDULE or (before.at in ends and ends[before.at].is_certain)
    )
    expired = (before.at for before, after in wanted if before.expires_ms and after.sent_ms > before.expires_ms)
    return {
        "unwanted": _sorted([*unwanted, *expired]),
        "early": _sorted(before.at for before, after in wanted if _is_early(before, after)),
        "wrong_due": _sorted(before.at for before, after in wanted if after.due_ms != before.due_ms),
        "altered": _sorted(before.at for before, after in wanted if _content(before) != _content(after)),
        "misdirected": _sorted(before.at for before, after in wanted if _is_elsewhere(before, after)),
    }


def _faults_of_dead_letters(
    source: Mapping[Coordinates, SourceRecord], dead_letters: Sequence[DeadLetter], arrivals: Mapping[Coordinates, int]
) -> dict[str, tuple[Coordinates, ...]]:
    """Return the faults of the dead-letter topic, by the verdict's field; `arrivals` are counts by source record."""
    letters = Counter(letter.source for letter in dead_letters)
    due_there = {at for at, record in source.items() if record.fate is Fate.DEAD_LETTER}
    allowed = due_there | {
        at for at, record in source.items() if record.expires_ms is not None and not arrivals.get(at)
    }
    altered = (letter.source for letter in dead_letters if letter.source in source and _is_altered(letter, source))
    return {
        "dead_letters_missing": _sorted(due_there - letters.keys()),
        "dead_letters_unwanted": _sorted(letters.keys() - allowed),
        "dead_letters_twice": _sorted(at for at, count in letters.items() if count > 1),
        "dead_letters_altered": _sorted(altered),
    }


def _is_altered(letter: DeadLetter, source: Mapping[Coordinates, SourceRecord]) -> bool:
    sent = source[letter.source]
    if letter.is_shortened:
        return letter.key != sent.key
    return (letter.key, letter.value, letter.headers) != (sent.key, sent.value, sent.sent_headers)


def _ingested_by_ms(sent_ms: int, outages: Sequence[Outage], settle_ms: int) -> int:
    """Return the moment at which a relay has surely worked for `settle_ms` on end after `sent_ms`."""
    moment_ms = sent_ms + settle_ms
    for outage in sorted(outages, key=lambda outage: outage.start_ms):
        if moment_ms > outage.start_ms and sent_ms < outage.end_ms:
            moment_ms = outage.end_ms + settle_ms
    return moment_ms


def _is_early(before: SourceRecord, after: DeliveredRecord) -> bool:
    return min(after.sent_ms, after.timestamp_ms) < before.due_ms


def _is_elsewhere(before: SourceRecord, after: DeliveredRecord) -> bool:
    return before.target is not None and after.topic is not None and before.target != after.topic


def _lateness(before: SourceRecord, after: DeliveredRecord) -> Lateness:
    return Lateness(due_ms=before.due_ms, late_ms=after.sent_ms - max(before.due_ms, before.sent_ms))


def _content(record: SourceRecord | DeliveredRecord) -> tuple[bytes | None, bytes | None, Headers]:
    return record.key, record.value, record.headers


def _sorted(coordinates: Iterable[Coordinates]) -> tuple[Coordinates, ...]:
    return tuple(sorted(set(coordinates)))
