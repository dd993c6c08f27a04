"""The verdict on a run's records: what happened against what had to. Pure; independent of the project's audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from .records import Receipt

EXAMPLES = 5
FAULTS = ("not_accepted", "sent_twice", "lost", "twice", "early", "unwanted", "unknown", "misattributed", "refused")


class Sent(NamedTuple):
    """A record of the source topic; `due_ms` is None when it withdraws the record of that number."""

    number: int
    partition: int
    offset: int
    due_ms: int | None
    appended_ms: int


class Arrival(NamedTuple):
    """A record of the target topic; `due_ms` is what its value says, `appended_ms` the broker's time."""

    number: int
    due_ms: int
    receipt: Receipt | None
    appended_ms: int


@dataclass(slots=True)
class Seen:
    """Everything of one run that was read so far; `refused` are numbers on the dead-letter topic."""

    sent: list[Sent] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


class Expected(NamedTuple):
    """A run that was sent: its name, and how many numbers it has, from 0 on.

    A cancel that came at least `settle_ms` before its record was due has to take effect; for a later one, both
    outcomes are right.
    """

    source: str
    target: str
    run: str
    records: int
    settle_ms: int = 2_000


def awaited(seen: Seen, expected: Expected) -> set[int]:
    """Numbers that have not come yet, and may still: on the source, or on the target."""
    came = {arrival.number for arrival in seen.arrivals}
    withdrawn = {sent.number for sent in seen.sent if sent.due_ms is None}
    return set(range(expected.records)) - came - withdrawn - set(seen.refused)


def last_due_ms(seen: Seen) -> int:
    """Return when the last record is due; 0 without any."""
    return max((sent.due_ms for sent in seen.sent if sent.due_ms is not None), default=0)


def judge(seen: Seen, expected: Expected) -> dict[str, Any]:
    """Counts, faults with examples (none when all is well), and lateness; every record was due long enough ago.

    Lateness is the append time on the target, after the due time or, if that was later, the append time on the source.
    Silence is the longest time between two arrivals from one partition of the source.
    """
    schedules = {sent.number: sent for sent in seen.sent if sent.due_ms is not None}
    cancels = {sent.number: sent for sent in seen.sent if sent.due_ms is None}
    counts = Counter(arrival.number for arrival in seen.arrivals)
    withdrawn = {number for number, cancel in cancels.items() if _holds(cancel, schedules.get(number), expected)}
    found: dict[str, Iterable[int]] = {
        "not_accepted": set(range(expected.records)) - schedules.keys(),
        "sent_twice": _repeated(sent.number for sent in seen.sent if sent.due_ms is not None),
        "lost": schedules.keys() - counts.keys() - cancels.keys() - set(seen.refused),
        "twice": _repeated(arrival.number for arrival in seen.arrivals),
        "early": (arrival.number for arrival in seen.arrivals if _is_early(arrival)),
        "unwanted": withdrawn & counts.keys(),
        "unknown": counts.keys() - schedules.keys(),
        "misattributed": (each.number for each in seen.arrivals if not _is_attributed(each, schedules, expected)),
        "refused": seen.refused,
    }
    return {
        "records": len(schedules),
        "arrived": len(counts),
        "withdrawn": len(cancels.keys() - counts.keys()),
        "faults": {name: _shown(sorted(numbers)) for name in FAULTS if (numbers := set(found[name]))},
        "late_ms": _lateness(seen.arrivals, schedules),
        "silent_ms": _silence(seen.arrivals),
    }


def _holds(cancel: Sent, schedule: Sent | None, expected: Expected) -> bool:
    due_ms = schedule.due_ms if schedule is not None else None
    return due_ms is not None and cancel.appended_ms + expected.settle_ms <= due_ms


def _repeated(numbers: Iterable[int]) -> set[int]:
    return {number for number, count in Counter(numbers).items() if count > 1}


def _is_early(arrival: Arrival) -> bool:
    sent_ms = arrival.receipt.sent_ms if arrival.receipt is not None else arrival.appended_ms
    return min(sent_ms, arrival.appended_ms) < arrival.due_ms


def _is_attributed(arrival: Arrival, schedules: Mapping[int, Sent], expected: Expected) -> bool:
    """Return whether the receipt names the very record of the source that this is, and its due time."""
    sent, receipt = schedules.get(arrival.number), arrival.receipt
    if sent is None or receipt is None:
        return sent is None
    said = (receipt.due_ms, receipt.partition, receipt.offset, receipt.topic)
    return said == (sent.due_ms, sent.partition, sent.offset, expected.source) and sent.due_ms == arrival.due_ms


def _lateness(arrivals: Sequence[Arrival], schedules: Mapping[int, Sent]) -> dict[str, int]:
    late_ms = sorted(
        arrival.appended_ms - max(arrival.due_ms, schedules[arrival.number].appended_ms)
        for arrival in arrivals
        if arrival.number in schedules
    )
    if not late_ms:
        return {}
    return {"p50": _rank(late_ms, 50), "p99": _rank(late_ms, 99), "max": late_ms[-1]}


def _silence(arrivals: Sequence[Arrival]) -> int:
    times: dict[int, list[int]] = {}
    for arrival in arrivals:
        if arrival.receipt is not None:
            times.setdefault(arrival.receipt.partition, []).append(arrival.appended_ms)
    steps = (later - earlier for of_one in times.values() for earlier, later in pairwise(sorted(of_one)))
    return max(steps, default=0)


def _rank(values: Sequence[int], percent: int) -> int:
    return values[-(-len(values) * percent // 100) - 1]


def _shown(numbers: Sequence[int]) -> dict[str, Any]:
    return {"count": len(numbers), "first": list(numbers[:EXAMPLES])}
