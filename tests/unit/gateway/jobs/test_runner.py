"""One job over relays and a log that a test moves: each record has its turn once, whatever happens in between."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.gateway.gateway import NOW_MS, REMINDERS
from tests.support.gateway.jobs import MemoryJobLog, World

from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_gateway.jobs import job as job_module
from delaytopic_gateway.jobs.job import Action, Job, Part, Reason, Selector, State
from delaytopic_gateway.jobs.relays import Relays
from delaytopic_gateway.jobs.runner import HEARTBEAT_MS, MISSING_MS, CommandTooLarge, Fenced, JobWriter, Runner
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000


class Killed(Exception):
    """The process is gone."""


class Fate:
    """Kills at some of the commits."""

    def __init__(self, fates: list[str]) -> None:
        self._fates = iter(fates)
        self._now = ""

    def before(self) -> None:
        self._now = next(self._fates, "lives")
        if self._now == "killed before":
            raise Killed

    def after(self) -> None:
        if self._now == "killed after":
            raise Killed


def new_job(world: World, action: Action = Action.CANCEL, **changes: Any) -> Job:
    fields = {"shift_ms": HOUR_MS} if action is Action.MOVE else {}
    return Job(
        id="job",
        namespace=REMINDERS.namespace,
        name=REMINDERS.name,
        source=REMINDERS.source,
        action=action,
        selector=Selector(),
        created_ms=NOW_MS,
        updated_ms=NOW_MS,
        skipped={},
        parts=tuple(Part(partition=each, before_offset=end) for each, end in world.ends("").items()),
    ).model_copy(update={**fields, **changes})


class Work(NamedTuple):
    """A runner, and the right to write the job that it had when it began."""

    runner: Runner
    writer: JobWriter

    def run(self) -> Job:
        return self.runner.run(self.writer)


def runner(world: World, log: MemoryJobLog, job: Job) -> Work:
    relays = Relays(world, world.ask)
    found = Runner(job, world, relays, world.ends, world.clock, world.pause, lambda: world.pause(1))
    return Work(found, log.open(job.key))


def carried_out(world: World, job: Job) -> Job:
    return runner(world, MemoryJobLog(world.write), job).run()


def world_of(*records: tuple[int, int, bytes | None]) -> World:
    world = World()
    for partition, due_ms, name in records:
        world.add(partition, due_ms, name)
    return world


def written(world: World) -> Counter[bytes]:
    """Count the cancels of each id."""
    return Counter(each for records in world.source.values() for each in records if isinstance(each, bytes))


def due(world: World) -> dict[bytes | None, list[int]]:
    """Return when each id was ever due, in the order of the source."""
    found: dict[bytes | None, list[int]] = {}
    for records in world.source.values():
        for each in records:
            if isinstance(each, Schedule):
                found.setdefault(each.id, []).append(each.due_ms - NOW_MS)
    return found


def test_each_record_that_matches_is_cancelled_and_no_other() -> None:
    world = world_of((0, NOW_MS + 5, b"a-1"), (1, NOW_MS + 9, b"b-1"), (0, NOW_MS + HOUR_MS, b"a-2"))

    job = carried_out(world, new_job(world, selector=Selector(id_prefix="a-")))

    assert (job.state, job.expected, job.matched, job.written, job.skipped) == (State.DONE, 2, 2, 2, {})
    assert written(world) == {b"a-1": 1, b"a-2": 1}
    assert [part.done for part in job.parts] == [True, True]


@pytest.mark.parametrize(
    ("action", "changes", "due_ms"),
    [
        (Action.MOVE, {}, [HOUR_MS, 2 * HOUR_MS]),
        (Action.MOVE, {"shift_ms": -HOUR_MS // 2}, [HOUR_MS, HOUR_MS // 2]),
        (Action.MOVE, {"shift_ms": None, "due_ms": NOW_MS + 3 * HOUR_MS}, [HOUR_MS, 3 * HOUR_MS]),
    ],
)
def test_a_record_is_moved_by_a_span_or_to_a_time(action: Action, changes: dict[str, Any], due_ms: list[int]) -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))

    carried_out(world, new_job(world, action, **changes))

    assert due(world) == {b"a": due_ms}


def test_a_released_record_is_due_when_its_turn_comes() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))

    carried_out(world, new_job(world, Action.RELEASE))

    (_, released_ms) = due(world)[b"a"]
    assert 0 <= released_ms <= world.now_ms - NOW_MS


def test_what_cannot_be_moved_is_counted_by_reason() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, None), (0, NOW_MS + 29_000, b"near"), (1, NOW_MS + HOUR_MS, b"goes"))
    world.add(1, NOW_MS + HOUR_MS, b"expires", expires_ms=NOW_MS + HOUR_MS)
    world.add(1, NOW_MS + 23 * HOUR_MS + 1_000_000, b"far")

    job = carried_out(world, new_job(world, Action.MOVE))

    assert (job.matched, job.written) == (5, 1)
    assert job.skipped == dict.fromkeys((Reason.NO_ID, Reason.TOO_NEAR, Reason.EXPIRES, Reason.TOO_FAR), 1)


def test_what_was_delivered_before_its_turn_is_counted_as_gone() -> None:
    world = world_of((0, NOW_MS + 2_000, b"soon"), (0, NOW_MS + HOUR_MS, b"later"))
    log = MemoryJobLog(world.write)
    log.after_commit = lambda: world.pause(3)

    job = runner(world, log, new_job(world)).run()

    assert (job.expected, job.matched, job.written, job.skipped) == (2, 1, 1, {Reason.GONE: 1})


def test_what_came_after_the_job_is_not_the_jobs() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"before"))
    job = new_job(world)
    world.add(0, NOW_MS + HOUR_MS + 5, b"after")

    done = carried_out(world, job)

    assert (done.expected, done.matched, written(world)) == (1, 1, {b"before": 1})


def test_nothing_is_counted_before_relays_have_read_what_was_there() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"), (1, NOW_MS + HOUR_MS, b"b"))
    world.read = {0: 0, 1: 1}
    log = MemoryJobLog(world.write)
    work = runner(world, log, new_job(world))

    def reads_later() -> None:
        if world.now_ms > NOW_MS + 60_000:
            world.read.clear()

    world.before_answer = reads_later
    job = work.run()

    assert (job.expected, job.written) == (2, 2)
    assert world.now_ms > NOW_MS + 60_000


def test_a_partition_that_relays_do_not_read_holds_up_no_other() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"), (1, NOW_MS + HOUR_MS, b"b"))
    log = MemoryJobLog(world.write)
    stuck = new_job(world).counted(2, NOW_MS)
    world.read = {0: 0}

    def gives_up() -> None:
        if world.now_ms > NOW_MS + 60_000:
            raise Killed

    world.before_answer = gives_up
    with pytest.raises(Killed):
        runner(world, log, stuck).run()

    assert written(world) == {b"b": 1}
    assert log.written[stuck.key].message == "relays have records of partitions 0 still to read"


def test_a_waiting_job_is_written_again_and_again_so_that_nobody_takes_it_for_left() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))
    log, times = MemoryJobLog(world.write), list[int]()
    log.after_commit = lambda: times.append(world.now_ms)
    world.read = {0: 0}

    def gives_up() -> None:
        if world.now_ms > NOW_MS + 60_000:
            raise Killed

    world.before_answer = gives_up
    with pytest.raises(Killed):
        runner(world, log, new_job(world)).run()

    assert max(later - earlier for earlier, later in pairwise(times)) < 2 * HEARTBEAT_MS


def test_a_command_that_kafka_refuses_for_its_size_is_counted_and_the_others_are_written() -> None:
    world = world_of(*((0, NOW_MS + HOUR_MS + n, b"%d" % n) for n in range(5)))
    log = MemoryJobLog(world.write)
    work = runner(world, log, new_job(world, Action.MOVE))
    commit = work.writer.commit

    def refusing(job: Job, topic: str = "", partition: int = 0, commands: Any = ()) -> None:
        for number, command in enumerate(commands):
            if dict(command.headers)["deliver-id"] == b"3":
                raise CommandTooLarge(number)
        commit(job, topic, partition, commands)

    work.writer.commit = refusing  # type: ignore[method-assign]
    job = work.run()

    assert (job.state, job.matched, job.written, job.skipped) == (State.DONE, 5, 4, {Reason.TOO_LARGE: 1})
    assert sorted(len(times) for times in due(world).values()) == [1, 2, 2, 2, 2]


def test_a_delay_topic_that_went_fails_the_job_after_a_while() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))
    log = MemoryJobLog(world.write)
    job = new_job(world, name="gone")

    done = runner(world, log, job).run()

    assert (done.state, done.message) == (State.FAILED, "there is no DelayTopic shop/gone here any more")
    assert world.now_ms - NOW_MS > MISSING_MS


def test_who_was_fenced_writes_nothing_more() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))
    log = MemoryJobLog(world.write)
    first = runner(world, log, new_job(world))
    second = runner(world, log, new_job(world))

    with pytest.raises(Fenced):
        first.run()

    assert (written(world), second.run().written) == ({}, 1)


def test_a_relay_that_cannot_list_further_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))
    refusals = iter([True, True])
    real = world.ask

    def ask(urls: Any, parameters: Any) -> Any:
        if parameters["limit"] and next(refusals, False):
            raise RelayUnreachableError("other listings are under way; ask again")
        return real(urls, parameters)

    monkeypatch.setattr(world, "ask", ask)
    assert carried_out(world, new_job(world)).written == 1


def test_nothing_is_moved_while_relays_answer_too_slowly_to_know_how_far_they_are() -> None:
    world = world_of((0, NOW_MS + HOUR_MS, b"a"))
    log = MemoryJobLog(world.write)

    def slowly() -> None:
        world.pause(6)
        if world.now_ms > NOW_MS + 100_000:
            world.before_answer = lambda: world.pause(4)

    world.before_answer = slowly
    messages: list[str | None] = []
    log.after_commit = lambda: messages.append(log.written["shop/reminders/job"].message)
    job = runner(world, log, new_job(world, Action.MOVE)).run()

    assert (job.state, job.written) == (State.DONE, 1)
    assert "relays answer too slowly for records to be moved in time" in messages
    assert world.now_ms > NOW_MS + 100_000


RECORDS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.sampled_from([None, b"a", b"b", b"c", b"d", b"e", b"f"])),
    max_size=12,
)
FATES = st.lists(st.sampled_from(["lives", "lives", "killed before", "killed after"]), max_size=40)


@given(
    records=RECORDS,
    action=st.sampled_from(Action),
    batch=st.integers(1, 3),
    page=st.integers(1, 4),
    fates=FATES,
    lags=st.lists(st.integers(0, 5), max_size=40),
)
def test_each_record_has_its_turn_once_wherever_the_gateway_is_killed(
    records: list[tuple[int, int, bytes | None]],
    action: Action,
    batch: int,
    page: int,
    fates: list[str],
    lags: list[int],
) -> None:
    # Given records some of which replace others, and a relay that reads with a delay
    world = world_of(*((partition, NOW_MS + (1 + hours) * HOUR_MS, name) for partition, hours, name in records))
    world.most = page
    matching = [(partition, each) for partition in world.source for each in world.waiting(partition)]
    job, log = new_job(world, action), MemoryJobLog(world.write)
    log.written[job.key] = job
    commands: list[OutgoingRecord] = []

    def write(topic: str, partition: int, record: OutgoingRecord) -> None:
        commands.append(record)
        world.write(topic, partition, record)

    log.write = write
    lag = iter(lags)
    fate = Fate(fates)
    log.before_commit, log.after_commit = fate.before, fate.after

    def behind() -> None:
        by = next(lag, 0)
        world.read = {partition: max(0, len(source) - by) for partition, source in world.source.items()}

    world.before_answer = behind

    # When the gateway is killed at any commits, before or after, and started again
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_module, "BATCH_RECORDS", batch)
        while not log.written[job.key].is_over:
            with suppress(Killed):
                runner(world, log, log.written[job.key]).run()

    # Then each that has an id got one command, and all that match had one turn
    done = log.written[job.key]
    named = Counter((partition, each.id) for partition, each in matching if each.id is not None)
    assert (done.state, done.expected, done.matched) == (State.DONE, len(matching), len(matching))
    assert (done.written, len(commands)) == (named.total(), named.total())
    assert Counter(dict(each.headers)["deliver-id"] for each in commands) == Counter(
        name for _, name in named.elements()
    )
    assert done.skipped == ({Reason.NO_ID: len(matching) - named.total()} if len(matching) > named.total() else {})
