"""Shards with a memory backlog over weeks of simulated time, with slices of hours, minutes and seconds."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter

import pytest
from tests.support.relay.backlog.shard_run import Delivered, ShardRun
from tests.support.relay.schedules import key_of, schedule

from delaytopic_relay.backlog.slices import NARROW_MS
from delaytopic_relay.core.commands import DueKey, Schedule

START_MS = 1_795_269_600_000
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
DAYS = 30
RECORDS = 1_500


def delay_ms(rng: random.Random) -> int:
    """A delay of any magnitude up to thirty days."""
    return rng.randrange(rng.choice([1, 10_000, MINUTE_MS, HOUR_MS, DAY_MS, DAYS * DAY_MS]))


def history(seed: int) -> list[tuple[int, Schedule]]:
    """Schedules, and when each is produced: most in the first days, some at any time."""
    rng = random.Random(seed)
    sent_ms = sorted(START_MS + rng.randrange(rng.choice([3, DAYS]) * DAY_MS) for _ in range(RECORDS))
    return [(at_ms, schedule(at_ms + delay_ms(rng), offset)) for offset, at_ms in enumerate(sent_ms)]


def times(sent: list[tuple[int, Schedule]], rng: random.Random) -> list[int]:
    """Return the times at which something happens, a look at the clock every ten minutes, and some pauses."""
    moments = {at_ms for at_ms, _ in sent} | {entry.due_ms for _, entry in sent}
    moments.update(range(START_MS, max(moments) + HOUR_MS, 10 * MINUTE_MS))
    return sorted(moment for moment in moments if rng.random() < 0.999)


def play(seed: int, *, crashes: bool, horizon_ms: int = 10_000) -> tuple[ShardRun, list[tuple[int, Schedule]]]:
    """A whole history; with crashes, a new owner takes over now and then."""
    rng = random.Random(seed)
    sent, run = history(seed), ShardRun(horizon_ms)
    produced = 0
    for now_ms in times(sent, rng):
        arrived = bisect_right(sent, now_ms, key=lambda entry: entry[0])
        run.source += [entry for _, entry in sent[produced:arrived]]
        produced = arrived
        if crashes and rng.random() < 0.01:
            run.recover()
        run.tick(now_ms, chunk=rng.choice([1, 7, 1_000]))
        run.tick(now_ms)
    return run, sent


def in_order_of_reading(delivered: list[Delivered], sent: list[tuple[int, Schedule]]) -> list[DueKey]:
    """The keys as they should leave: by due time, but never before they were produced."""
    produced_ms = {key_of(entry): at_ms for at_ms, entry in sent}
    return [key for _, key in sorted((max(key.due_ms, produced_ms[key]), key) for _, key in delivered)]


def lost_or_twice(run: ShardRun, sent: list[tuple[int, Schedule]]) -> Counter[DueKey]:
    """Return how much more than once each key left, or -1 if it never left; nothing of those that left once."""
    left = Counter(key for _, key in run.outcome.delivered)
    left.subtract(key_of(entry) for _, entry in sent)
    return Counter({key: count for key, count in left.items() if count})


Played = tuple[ShardRun, list[tuple[int, Schedule]]]


@pytest.fixture(scope="module")
def undisturbed() -> Played:
    """Thirty days of one owner."""
    return play(7, crashes=False)


@pytest.fixture(scope="module")
def with_crashes() -> Played:
    """Thirty days of many owners, and a last look at the clock sixty days later, when nothing is left to leave."""
    run, sent = play(10, crashes=True)
    left_before = len(run.outcome.delivered)
    run.tick(START_MS + 3 * DAYS * DAY_MS)
    assert len(run.outcome.delivered) == left_before
    return run, sent


@pytest.mark.parametrize("history", ["undisturbed", "with_crashes"])
def test_over_thirty_days_each_leaves_once_and_never_early(history: str, request: pytest.FixtureRequest) -> None:
    run, sent = request.getfixturevalue(history)

    assert lost_or_twice(run, sent) == {}
    assert [key for at_ms, key in run.outcome.delivered if at_ms < key.due_ms] == []


@pytest.mark.parametrize("crashes", [False, True])
def test_with_a_horizon_of_hours_that_reaches_into_wide_slices_each_leaves_once(crashes: bool) -> None:
    run, sent = play(3, crashes=crashes, horizon_ms=26 * HOUR_MS)

    assert lost_or_twice(run, sent) == {}


def test_over_thirty_days_they_leave_in_the_order_of_their_keys(undisturbed: Played) -> None:
    run, sent = undisturbed

    delivered = [key for _, key in run.outcome.delivered]

    assert delivered == in_order_of_reading(run.outcome.delivered, sent)


def test_over_thirty_days_each_leaves_at_the_first_look_at_the_clock_after_its_time(undisturbed: Played) -> None:
    run, sent = undisturbed
    produced_ms = {key_of(entry): at_ms for at_ms, entry in sent}

    lateness_ms = [at_ms - max(key.due_ms, produced_ms[key]) for at_ms, key in run.outcome.delivered]

    assert max(lateness_ms) <= 10 * MINUTE_MS
    assert sum(late_ms == 0 for late_ms in lateness_ms) > 0.98 * RECORDS


def test_over_thirty_days_memory_holds_no_more_than_a_horizon_of_schedules(undisturbed: Played) -> None:
    run, sent = undisturbed

    dues_ms = sorted(entry.due_ms for _, entry in sent)
    reach_ms = run.horizon_ms + 10 * MINUTE_MS + 2 * NARROW_MS
    within_reach = max(bisect_right(dues_ms, due_ms + reach_ms) - index for index, due_ms in enumerate(dues_ms))
    assert run.most_in_memory <= within_reach


def test_after_thirty_days_of_crashes_the_backlog_is_empty(with_crashes: Played) -> None:
    run, _ = with_crashes

    assert (run.store.slices(0), run.shard.pending, run.committed and run.committed.offset) == ({}, 0, RECORDS)
