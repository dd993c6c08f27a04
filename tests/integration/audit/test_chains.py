"""Chains of what recurs: truth injected, truth found, whatever runs it is split into."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.audit.chains import Chain, Chains, chains_of
from tests.support.audit.delay_topics import DAY_MS, HOUR_MS
from tests.support.audit.runs import SOURCE, carry_out_with, plan_of, report_of, rules_of

from delaytopic_api.values import Guarantee
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.report import Report
from delaytopic_audit.pipeline.gathering import current
from delaytopic_audit.reading.decoding import Row

pytestmark = [pytest.mark.long, pytest.mark.takes_long("Spark carries out some runs")]
Found = set[tuple[str, int, str | None]]


def ms(text: str) -> int:
    """Return an instant as epoch milliseconds."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)


START_MS = ms("2026-11-21T12:00:00+00:00")
END_MS = START_MS + 2 * DAY_MS
HOURLY = {"deliver-every": b"1h"}
OUTAGE_MS = 3 * HOUR_MS + HOUR_MS // 2
DAY = {**HOURLY, "deliver-missed": b"All", "deliver-catch-up": b"24h"}
NONE = {**HOURLY, "deliver-missed": b"None", "deliver-until": b"%d" % (START_MS + 4 * HOUR_MS + 1_000)}
FAULTY = {
    b"broken": Chain(HOURLY, START_MS + 1, 5, breaks_after=2),
    b"skipped": Chain(HOURLY, START_MS + 2, 4, skips=(2,)),
    b"repeated": Chain(HOURLY, START_MS + 3, 4, repeats=(2,)),
    b"late": Chain(HOURLY, START_MS + 4, 4, late={2: OUTAGE_MS}),
}
CHAINS = {
    **FAULTY,
    b"whole": Chain(HOURLY, START_MS + 5, 3),
    b"doubled": Chain(HOURLY, START_MS + 6, 3, written_twice=(1,)),
    b"made up for": Chain(DAY, START_MS + 7, 9, late={2: OUTAGE_MS}),
    b"skipped in it": Chain(DAY, START_MS + 8, 4, late={2: OUTAGE_MS}, skips=(2,)),
    b"ended by it": Chain(NONE, START_MS + 9, 9, late={2: OUTAGE_MS}),
    b"cancelled": Chain(HOURLY, START_MS + 10, 5, cancelled_before=3),
    b"put off": Chain({**HOURLY, "deliver-jitter": b"30m"}, START_MS + 11, 3),
    b"broken late": Chain(HOURLY, START_MS + 12, 5, late={2: 3 * HOUR_MS}, breaks_after=2),
    b"just read": Chain(HOURLY, START_MS + 13, 3, late={2: 3 * HOUR_MS}),
}
CHANGES = {
    b"Europe/Berlin": ("2026-03-29T00:00:00+00:00", "2026-10-25T00:00:00+00:00"),
    b"Australia/Lord_Howe": ("2026-04-04T12:00:00+00:00", "2026-10-03T12:00:00+00:00"),
}
OVER_CHANGES = {
    b"%b %d %b" % (zone, place, rule): Chain({"deliver-cron": rule, "deliver-tz": zone}, ms(change) - DAY_MS, count)
    for zone, changes in CHANGES.items()
    for place, change in enumerate(changes)
    for rule, count in ((b"30 1-3 * * *", 8), (b"*/30 0-4 * * *", 24))
}
"""Whole chains over both changes of clock."""


def found_of(world: Chains) -> Found:
    """Return what is to be found of `FAULTY`, or of all chains."""

    def slot(identity: bytes, number: int) -> str:
        moment = datetime.fromtimestamp((CHAINS[identity].begins_ms + number * HOUR_MS) / 1000, UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    found: Found = {("replaced", offset, None) for (_, number), [offset, *_] in world.offsets.items() if number == 0}
    found |= {
        ("chains-broken", world.at(b"broken", 2), slot(b"broken", 3)),
        ("slots-skipped", world.at(b"skipped", 2), f"1 from {slot(b'skipped', 3)}"),
        ("slots-repeated", world.at(b"repeated", 3), slot(b"repeated", 2)),
        ("slots-missed", world.at(b"late", 2), f"2 from {slot(b'late', 3)}"),
        ("late", world.at(b"late", 2), None),
    }
    if (b"whole", 0) in world.offsets:
        late = (b"made up for", b"skipped in it", b"ended by it", b"broken late", b"just read")
        found |= {
            *(("slots-repeated", world.at(b"doubled", n, 1), slot(b"doubled", n)) for n in (2, 3)),
            ("slots-skipped", world.at(b"skipped in it", 2), f"1 from {slot(b'skipped in it', 3)}"),
            ("slots-missed", world.at(b"ended by it", 2), f"2 from {slot(b'ended by it', 3)}"),
            ("slots-missed", world.at(b"just read", 2), f"2 from {slot(b'just read', 3)}"),
            ("chains-broken", world.at(b"broken late", 2), slot(b"broken late", 3)),
            ("cancelled", world.at(b"cancelled", 3), None),
            *(("late", world.at(identity, 2), None) for identity in late),
        }
    return found


def audited(
    spark: SparkSession,
    folder: Path,
    runs: Sequence[tuple[int, Sequence[Row]]],
    guarantee: Guarantee = Guarantee.EXACTLY_ONCE,
) -> tuple[list[Found], Report]:
    """Return findings after each of some runs, which judge up to a time and read these rows, and the last report."""
    ledger, rules, found = Ledger(spark, str(folder)), rules_of(retention_ms=400 * DAY_MS), list[Found]()
    rules = rules.model_copy(update={"guarantee": guarantee})
    for sequence, (now_ms, rows) in enumerate(runs, start=1):
        commit = carry_out_with(spark, ledger, plan_of(sequence, now_ms, rules, (0, 10_000)), rows)
        listed = current(ledger, commit, "findings").collect()
        found.append({(row.finding, row.offset, row.reason) for row in listed})
    return found, report_of(ledger, commit, 400 * DAY_MS, now_ms)


def split(world: Chains, *places: int) -> list[tuple[int, list[Row]]]:
    """Return the rows of runs that end at these places among all records, and of one that reads the rest."""
    rows, bounds = world.rows(), [0, *places, len(world.sent)]
    ends_ms = [*(rows[place][0] for place in places), END_MS]
    return [
        (end_ms, [row for _, row in rows[start:end]])
        for end_ms, (start, end) in zip(ends_ms, pairwise(bounds), strict=True)
    ]


@pytest.mark.parametrize(
    "more", [pytest.param([], id="two runs"), pytest.param([9], id="three runs", marks=pytest.mark.nightly)]
)
def test_each_fault_of_a_chain_is_found_with_its_coordinates_and_its_slot_by_runs_that_end_between_its_occurrences(
    spark: SparkSession, tmp_path: Path, more: Sequence[int]
) -> None:
    world = chains_of(CHAINS | OVER_CHANGES)
    between = next(place for place, (sent, _) in enumerate(world.sent) if sent.append_ms > START_MS + 2 * HOUR_MS)
    # What follows a late delivery is not read with it, as is so for one that nothing follows.
    follows = (SOURCE, world.at(b"just read", 3))
    in_it = next(place for place, (sent, offset) in enumerate(world.sent) if (sent.topic, offset) == follows)

    found, report = audited(spark, tmp_path, split(world, *(between + place for place in more), in_it))

    *earlier, before, last = ({offset for finding, offset, _ in each if finding == "chains-broken"} for each in found)
    assert earlier == [set() for _ in more]
    assert (before, last) == ({world.at(b"broken", 2)}, {world.at(b"broken", 2), world.at(b"broken late", 2)})
    assert found[-1] == found_of(world)
    assert report.counts is not None
    occurrences = sum(len(offsets) for (_, number), offsets in world.offsets.items() if number)
    numbers = {"slots": occurrences, "slots_missed": 6, "slots_skipped": 2, "chains_broken": 2, "copies": 3}
    assert report.counts.model_dump(include=set(numbers), by_alias=False) == numbers
    assert {each.name: each.bad for each in report.objectives if each.name in ("Complete", "Unique")} == {
        "Complete": 4,
        "Unique": 3,
    }


@pytest.mark.nightly
def test_one_run_and_runs_that_are_split_at_any_point_find_the_same(spark: SparkSession, tmp_path: Path) -> None:
    world = chains_of(FAULTY)
    places = range(len(world.sent))

    found = [audited(spark, tmp_path / str(place), split(world, place))[0][-1] for place in places]

    assert found == [found_of(world)] * len(places)


@pytest.mark.nightly  # each day with transactions, where it is a fault
def test_an_occurrence_that_was_written_twice_without_transactions_is_counted_and_no_fault(
    spark: SparkSession, tmp_path: Path
) -> None:
    dropped = Chain(HOURLY, START_MS, 3, written_twice=(1,), drops_the_second=True)
    world = chains_of({b"dropped": dropped, b"delivered": Chain(HOURLY, START_MS + 1, 3, written_twice=(2,))})

    [found], report = audited(spark, tmp_path, split(world), Guarantee.AT_LEAST_ONCE)

    of_twin = world.at(b"dropped", 2, 1)
    assert found == {
        ("replaced", offset, None) for offset in (world.at(b"dropped", 0), world.at(b"delivered", 0), of_twin)
    }
    assert report.counts is not None
    assert (report.counts.copies, report.counts.slots_repeated, report.counts.lost) == (1, 0, 0)
