"""Replace and cancel on a shard with a backlog, against a model that keeps everything in one list."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.latest_wins import LatestWins
from tests.support.relay.backlog.shard_run import EVERYTHING, ShardRun
from tests.support.relay.schedules import cancel, schedule

from delaytopic_relay.core.commands import Command

START_MS = 1_000_000_000
HORIZON_MS = 10_000
A = b"a"


class Crash(Enum):
    """The point of its tick at which the shard's owner dies, if it does."""

    NOT = auto()
    BEFORE_PUT = auto()
    BEFORE_COMMIT = auto()
    BEFORE_DROP = auto()
    AFTER_DROP = auto()


class Wanted(NamedTuple):
    """A command to produce: a schedule after so much time, or a cancel."""

    delay_ms: int | None
    name: bytes | None


class Step(NamedTuple):
    """One tick: what was produced before it, how long that took, and how it ends."""

    commands: list[Wanted]
    pause_ms: int
    crash: Crash = Crash.NOT
    chunk: int = EVERYTHING


DELAYS_MS = st.sampled_from([-2_000, 0, 1, 900, 5_000, 9_999, 12_000, 14_000, 40_000, 2_400_000, 100_000_000])
NAMES = st.sampled_from([A, A, b"b"])
COMMANDS = st.one_of(
    st.builds(Wanted, DELAYS_MS, NAMES), st.builds(Wanted, DELAYS_MS, st.none()), st.builds(Wanted, st.none(), NAMES)
)
PAUSES_MS = st.sampled_from([0, 10, 1_000, 4_000, 15_000, 2_000_000, 90_000_000])
PRODUCED = st.lists(COMMANDS, max_size=4)
CALM = st.lists(st.builds(Step, PRODUCED, PAUSES_MS, st.just(Crash.NOT), st.sampled_from([1, 2, EVERYTHING])))
STORMY = st.lists(st.builds(Step, PRODUCED, PAUSES_MS, st.sampled_from(Crash), st.just(EVERYTHING)))
LAST = Step([], 200_000_000)


def command_of(wanted: Wanted, offset: int, now_ms: int) -> Command:
    if wanted.delay_ms is not None:
        return schedule(now_ms + wanted.delay_ms, offset, wanted.name)
    assert wanted.name is not None
    return cancel(offset, wanted.name)


def tick(run: ShardRun, now_ms: int, step: Step) -> None:
    """A tick, or what a crash leaves of it, followed by a new owner's first whole one."""
    run.ingest(now_ms, step.chunk)
    run.deliver(now_ms)
    if step.crash is not Crash.BEFORE_PUT:
        run.put(now_ms)
        if step.crash is not Crash.BEFORE_COMMIT:
            run.commit()
            if step.crash is not Crash.BEFORE_DROP:
                run.drop()
    if step.crash is not Crash.NOT:
        run.recover()
        run.load(now_ms)
        run.tick(now_ms)
    run.load(now_ms)


def play(steps: list[Step]) -> tuple[ShardRun, LatestWins]:
    """The same history on a shard and on the model."""
    run, model = ShardRun(horizon_ms=HORIZON_MS), LatestWins()
    now_ms = START_MS
    run.load(now_ms)
    for step in [*steps, LAST, LAST]:
        arrived = [command_of(wanted, len(run.source) + n, now_ms) for n, wanted in enumerate(step.commands)]
        run.source += arrived
        now_ms += step.pause_ms
        run.load(now_ms)
        model.ingest(arrived, now_ms)
        model.deliver(now_ms)
        tick(run, now_ms, step)
    return run, model


def in_order(run: ShardRun | LatestWins) -> list[tuple[int, int, int]]:
    """Deliveries by when they happened and by key: a chunk that is read in parts lets past ones leave in parts."""
    delivered = run.outcome.delivered if isinstance(run, ShardRun) else run.delivered
    return sorted((sent_ms, *key) for sent_ms, key in delivered)


@QUICK
@given(CALM)
def test_latest_wins(steps: list[Step]) -> None:
    run, model = play(steps)

    assert in_order(run) == in_order(model)


@QUICK
@given(STORMY)
def test_latest_wins_through_crashes(steps: list[Step]) -> None:
    run, model = play(steps)

    assert in_order(run) == in_order(model)


@QUICK
@given(CALM)
def test_every_command_with_an_id_is_counted_for_what_it_did(steps: list[Step]) -> None:
    run, model = play(steps)

    ours = run.outcome
    assert (ours.superseded, ours.cancelled, ours.too_late) == (model.superseded, model.cancelled, model.too_late)


@QUICK
@given(STORMY)
def test_in_the_end_neither_memory_nor_the_backlog_knows_any_id(steps: list[Step]) -> None:
    run, _ = play(steps)

    names = [A, b"b"]
    assert (len(run.shard.ids), run.store.slices(0)) == (0, {})
    assert run.store.ids(0, run.shard.store_version, names) == [None, None]


@QUICK
@given(STORMY)
@example([Step([Wanted(5_000, b"%d" % number) for number in range(50)], 0)])
def test_memory_knows_no_more_ids_than_it_holds_schedules(steps: list[Step]) -> None:
    run = ShardRun(horizon_ms=HORIZON_MS)
    now_ms = START_MS
    for step in steps:
        run.source += [command_of(wanted, len(run.source) + n, now_ms) for n, wanted in enumerate(step.commands)]
        now_ms += step.pause_ms
        tick(run, now_ms, step)

        assert len(run.shard.ids) <= run.shard.calendar.count
