"""A report with something of everything in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from delaytopic_api import Percent
from delaytopic_api.values import Calendar, Guarantee
from delaytopic_audit.model.manifest import (
    ClockReading,
    Commit,
    CountedFrom,
    GradedUntil,
    MinuteRange,
    Plan,
    Range,
    Role,
    Run,
    State,
    TopicRead,
)
from delaytopic_audit.model.report import Counts, Listed, Report
from delaytopic_audit.model.rules import Exclusion, Rules, Threshold
from delaytopic_audit.model.words import Finding
from delaytopic_audit.report.objectives import NONE, OF_LATENESS, MinuteCounts, added
from delaytopic_audit.report.reporting import Gathered, make_report, window_of

HOUR_MS = 3_600_000
END_MINUTE = 29_921_160
WINDOW_MINUTES = 24 * 60
NOW_MS = END_MINUTE * 60_000 + 70_000
RULES = Rules(
    lateness_ms=1_000,
    grace_ms=61_000,
    objective=Percent("99.9%"),
    window_ms=720 * HOUR_MS,
    guarantee=Guarantee.EXACTLY_ONCE,
    retention_ms=744 * HOUR_MS,
)


def minutes(*, faulty: bool) -> list[MinuteCounts]:
    """A day; with an incident in the middle, if it is faulty."""
    found = []
    for place in range(WINDOW_MINUTES):
        minute, records = END_MINUTE - WINDOW_MINUTES + place, 400 + place % 60 * 5
        late = 60 + place % 7 * 10 if faulty and 700 <= place < 716 else place % 300 == 7
        counts = Counts(asked=records + 5, delivered=records, on_time=records - late, late=int(late), cancelled=5)
        if faulty and place == 705:
            counts = counts.model_copy(
                update={"lost": 3, "asked": records + 8, "duplicated": 2, "copies": 2, "early": 1}
            )
        found.append(MinuteCounts(minute, counts, 41_250 if late > 1 else 1_400 if late else 640))
    return found


def histogram(all_minutes: list[MinuteCounts]) -> dict[int, dict[int, int]]:
    """Mostly some milliseconds, and seconds for what was late."""
    found = {}
    for minute in all_minutes:
        counts = minute.counts
        slow = counts.on_time // 20
        late = {400 + minute.minute % 90: counts.late} if counts.late else {}
        found[minute.minute] = {60 + minute.minute % 30: counts.on_time - slow, 180 + minute.minute % 120: slow, **late}
    return found


def state_of(sequence: int = 42) -> State:
    """The DelayTopic as the run has left it that the report is of."""
    ranges = [
        Range(topic=topic, role=role, partition=partition, start=1_000, end=181_234)
        for topic, role in (("shop.orders.delayed", Role.SOURCE), ("shop.orders", Role.TARGET))
        for partition in range(4)
    ]
    plan = Plan(
        delay_topic="shop/order-reminders",
        number=1,
        sequence=sequence,
        epoch=1,
        planned_at_ms=NOW_MS,
        source="shop.orders.delayed",
        target="shop.orders",
        dead_letter="shop.orders.delayed.dlq",
        rules=RULES,
        topics=[],
        ranges=ranges,
        scope=[],
    )
    return State(
        plan=plan,
        closed_minute=END_MINUTE,
        read=[
            TopicRead(topic="shop.orders.delayed", role=Role.SOURCE, records=720_936, by_broker=720_936, foreign=0),
            TopicRead(topic="shop.orders", role=Role.TARGET, records=713_002, by_broker=713_002, foreign=12),
        ],
        clocks=[ClockReading(topic="shop.orders", partition=p, least_ms=1 - 9 * (p == 2)) for p in range(4)],
        named=[],
        out_of_scope=0,
        beyond_retention=0,
        restated_minutes=3,
    )


def commit_of(sequence: int = 42) -> Commit:
    """The run that the report is of."""
    run = Run(sequence=sequence, folder="f", first_minute=1, last_minute=2, commands=0, overdue=0, asks={}, rows=0)
    return Commit(sequence=sequence, folder="f", states=[state_of()], numbers=1, runs=[run], parts=[])


def without_lateness(minute: MinuteCounts) -> MinuteCounts:
    """The same within an exclusion."""
    late = {name: getattr(minute.counts, name) for name in OF_LATENESS}
    return minute._replace(excluded=Counts(**late))


FAST = Threshold(name="Timely-100ms", lateness_ms=100, objective=Percent("99%"))
SURE = Threshold(name="Timely-1m", lateness_ms=60_000, objective=Percent("99.99%"))


def counted_by(minute: MinuteCounts, thresholds: Sequence[Threshold], first_minute: int) -> MinuteCounts:
    """The same with counts by these thresholds: one of 200 is too late for a narrow one, none for a wide one."""
    counts, further = minute.counts, {}
    for each in thresholds:
        late = 0 if each.lateness_ms > RULES.lateness_ms else counts.late + counts.delivered // 200
        graded = Counts(on_time=counts.delivered - late, late=late, lost=counts.lost)
        counted = graded if minute.minute >= first_minute else Counts()
        further[each.lateness_ms] = MinuteCounts(minute.minute, counted, None)
    return minute._replace(thresholds=further)


def sample_report(
    *,
    faulty: bool = True,
    excluded: Sequence[Exclusion] = (),
    calendar: Calendar | None = None,
    thresholds: Sequence[Threshold] = (),
    counted_minute: int = 0,
    formerly: Sequence[GradedUntil] = (),
    planned: Mapping[str, Any] | None = None,
    ancient: int = 0,
    slots: Counts = NONE,
    now_ms: int = NOW_MS,
) -> Report:
    """The report of a day; thresholds count from `counted_minute` on, `formerly` the lateness was another one.

    `planned` are further fields of the run's plan, `slots` further counts of its last minute.
    """
    all_minutes = [
        without_lateness(each) if any(one.from_ms <= each.minute * 60_000 < one.until_ms for one in excluded) else each
        for each in (counted_by(each, thresholds, counted_minute) for each in minutes(faulty=faulty))
    ]
    all_minutes[-1] = all_minutes[-1]._replace(counts=added([all_minutes[-1].counts, slots]))
    total = Counts(asked=200_000, delivered=199_000, on_time=198_900, late=100)
    moment_ms = (END_MINUTE - 735) * 60_000

    def listed(number: int, **more: Any) -> list[Listed]:
        return [
            Listed(partition=p % 4, offset=88_000 + 17 * p, deadline_ms=moment_ms + 137 * p, **more)
            for p in range(number)
        ]

    faults = {
        Finding.LOST: listed(3),
        Finding.DUPLICATED: listed(2, copies=2, lateness_ms=12, at_partition=1, at_offset=5_123),
        Finding.EARLY: listed(1, copies=1, lateness_ms=-812, at_partition=0, at_offset=5_124),
        Finding.LATE: listed(100, copies=1, lateness_ms=31_250, at_partition=3, at_offset=9_001),
    }
    gathered = Gathered(
        first_minute=all_minutes[0].minute,
        ages=all_minutes,
        spans=all_minutes,
        worst=all_minutes,
        faulty=all_minutes,
        partitions=dict.fromkeys(range(4), total),
        excluded={0: added(each.excluded for each in all_minutes)} if excluded else {},
        histogram=histogram(all_minutes),
        findings=faults if faulty else {},
        provisional=2 if faulty else 0,
    )
    state = state_of()
    rules = RULES.model_copy(
        update={"exclusions": list(excluded), "calendar": calendar, "thresholds": list(thresholds)}
    )
    counted = [CountedFrom(lateness_ms=each.lateness_ms, minute=counted_minute) for each in thresholds]
    plan = state.plan.model_copy(update={"rules": rules, **(planned or {})})
    state = state.model_copy(update={"plan": plan, "counted": counted, "formerly": list(formerly), "ancient": ancient})
    return make_report(state, MinuteRange(*window_of(state, WINDOW_MINUTES * 60_000)), gathered, now_ms)
