"""A relay whose source is not the one that progress was committed for, or whose offsets are gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import Relay, Setup, delivered_offsets, deliveries, produce, run_all, start
from tests.support.relay.world import World

from delaytopic_api.records import Headers
from delaytopic_api.relay import ShardReason
from delaytopic_relay.backlog.store import BacklogStore
from delaytopic_relay.core.progress import decode_progress, mark_of
from delaytopic_relay.core.recovery import Acceptance
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.errors import SourceReplaced
from delaytopic_relay.ports import Committed

SECOND = "2" * 22
HOUR_MS = 3_600_000
BACKENDS = {"redis": Setup(), "buckets": Setup(buckets=4)}
either = pytest.mark.parametrize("setup", BACKENDS.values(), ids=BACKENDS)
every = pytest.mark.parametrize("setup", [*BACKENDS.values(), Setup(delay_ms=60_000)], ids=[*BACKENDS, "queue"])


class Stores:
    """One backlog, as relays see it that find another topic in the source's place."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.memory = MemoryBacklogStore()

    def start(self, name: str, setup: Setup) -> Relay:
        """A relay that begins with the topic as it is now."""
        return start(self.world, self.seen(), name, setup)

    def seen(self) -> BacklogStore:
        return self.memory.of_topic(self.world.kafka.topic.identity.topic)


def in_former_life(world: World, setup: Setup, records: int = 3, name: bytes | None = None) -> Stores:
    """A relay took so many records in that are due in a minute, delivered one before, and was stopped."""
    stores = Stores(world)
    relay = stores.start("first", setup)
    if setup.delay_ms is None:
        produce(world, 100)
    for _ in range(records):
        produce(world, 60_000, name=name)
    relay.run(2_000)
    relay.finish()
    return stores


def all_offsets(world: World) -> list[int]:
    """The source offsets of all that left, dead letters included: a queue refuses records that name a time."""
    return [delivery.offset for delivery in deliveries(world)]


def made_anew(world: World, records: int = 0) -> None:
    world.kafka.make_anew(SECOND)
    for _ in range(records):
        produce(world, 60_000)


def reasons(relay: Relay) -> dict[int, ShardReason]:
    return {partition: error.reason for partition, error in relay.loop.snapshot().still.items()}


# -- another topic, another cluster, another log


def cut_and_grown(world: World, records: int = 0) -> None:
    world.source[0].cut(1)
    for _ in range(records):
        produce(world, 60_000)


def ends_before(world: World, records: int = 0) -> None:
    world.source[0].cut(1)


def in_another_cluster(world: World, records: int = 0) -> None:
    world.kafka.make_anew(SECOND, "another cluster")
    for _ in range(records):
        produce(world, 60_000)


CHANGES: dict[str, tuple[Callable[[World, int], None], ShardReason]] = {
    "another topic": (made_anew, ShardReason.TOPIC_CHANGED),
    "another cluster": (in_another_cluster, ShardReason.CLUSTER_CHANGED),
    "cut and grown": (cut_and_grown, ShardReason.LOG_TRUNCATED),
    "ends before": (ends_before, ShardReason.LOG_TRUNCATED),
}
change_of = pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)


@every
@change_of
def test_a_partition_whose_source_is_another_one_stands_still_and_commits_nothing(
    setup: Setup, change: Callable[[World, int], None], reason: ShardReason
) -> None:
    world = World()
    stores = in_former_life(world, setup)
    delivered, committed = all_offsets(world), dict(world.committed)

    change(world, 9)
    relay = stores.start("second", setup)
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), all_offsets(world), world.committed) == ({0: reason}, delivered, committed)


def test_a_partition_that_stands_still_is_looked_at_every_few_seconds_as_others_deliver_meanwhile() -> None:
    world = World()
    stores = in_former_life(world, Setup())
    made_anew(world)

    relay = stores.start("second", Setup())
    relay.run(50_000, step_ms=500)

    assert len(relay.events.errors) == 10


@every
@change_of
def test_a_source_that_was_accepted_is_read_from_its_beginning_and_nothing_of_the_former_one_is_delivered(
    setup: Setup, change: Callable[[World, int], None], reason: ShardReason
) -> None:
    world = World()
    stores = in_former_life(world, setup)
    delivered = len(all_offsets(world))
    change(world, 2)

    relay = stores.start("second", setup._replace(accepted=Acceptance(world.kafka.topic.topic_id)))
    relay.run(120_000, step_ms=1_000)

    assert reasons(relay) == {}
    assert sorted(all_offsets(world)[delivered:]) == [place.place for place in world.source[0].accepted()]


@either
def test_an_id_of_a_former_topic_is_forgotten_with_it(setup: Setup) -> None:
    # Given an id whose latest command had a higher offset than any of the topic that follows
    world = World()
    stores = in_former_life(world, setup, records=5, name=b"reminder")
    made_anew(world)
    produce(world, 60_000, name=b"reminder")

    relay = stores.start("second", setup._replace(accepted=Acceptance(SECOND)))
    relay.run(70_000, step_ms=1_000)

    assert delivered_offsets(world)[1:] == [0]


@either
def test_an_id_of_a_log_that_was_cut_is_forgotten_with_it(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup, records=5, name=b"reminder")
    world.source[0].cut(0)
    produce(world, 60_000, name=b"reminder")

    relay = stores.start("second", setup._replace(accepted=Acceptance(world.kafka.topic.topic_id)))
    relay.run(70_000, step_ms=1_000)

    assert delivered_offsets(world)[1:] == [0]


@either
def test_what_was_lost_with_a_former_topic_is_counted(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup, records=7)
    made_anew(world)
    relay = stores.start("second", setup._replace(accepted=Acceptance(SECOND)))
    lost: list[int | None] = []
    relay.events.recovered = lambda partition, cause, plan: lost.append(plan.lost_records)  # type: ignore[method-assign]

    relay.run(1_000)

    assert lost == [7]


def test_the_keys_of_a_former_topic_are_deleted() -> None:
    world = World()
    stores = in_former_life(world, Setup())
    former = stores.seen()
    made_anew(world)

    stores.start("second", Setup(accepted=Acceptance(SECOND))).run(1_000)

    assert former.version(0) is None


@every
def test_what_was_accepted_is_done_once(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup)
    made_anew(world, 2)
    accepted = setup._replace(accepted=Acceptance(SECOND))
    stores.start("second", accepted).run(100_000, step_ms=1_000)
    delivered = all_offsets(world)

    stores.start("third", accepted).run(100_000, step_ms=1_000)

    assert all_offsets(world) == delivered


def test_a_relay_begins_anew_when_its_source_is_made_anew_while_it_runs() -> None:
    world = World()
    relay = Stores(world).start("first", Setup())
    produce(world, 60_000)
    relay.run(1_000)

    made_anew(world, 5)
    relay.loop.lost([0])
    relay.loop.assigned([0])

    with pytest.raises(SourceReplaced, match="its topic id is 2222"):
        relay.run(2_000)


def test_records_of_an_earlier_epoch_make_a_relay_judge_its_source_again() -> None:
    # Given a relay that has read records of epoch 2, and a log that goes on with epoch 1 in front of it
    world = World()
    world.source[0].epoch = 2
    relay = Stores(world).start("first", Setup())
    produce(world, 60_000)
    relay.run(1_000)
    world.source[0].epoch = 1
    produce(world, 60_000)

    relay.run(3_000)

    assert relay.events.counts["aborted"] > 0


@every
def test_a_relay_goes_on_with_a_log_of_several_epochs_whose_records_wait(setup: Setup) -> None:
    # Given that the first relay has read all, and the next one reads a few at a time
    world = World()
    stores = Stores(world)
    headers: Headers = [("deliver-at", b"%d" % (world.now_ms + 60_000))] if setup.delay_ms is None else []
    for epoch in (0, 1, 2):
        world.source[0].epoch = epoch
        for _ in range(2):
            world.produce(0, b"k", b"v", headers)
    first = stores.start("first", setup)
    first.run(1_000)
    first.finish()

    second = stores.start("second", setup._replace(chunk=1))
    second.run(70_000, step_ms=500)

    assert (all_offsets(world), second.events.counts["aborted"]) == ([0, 1, 2, 3, 4, 5], 0)


@every
def test_a_partition_stands_still_whose_last_record_was_cut_away_although_only_aborted_ones_follow(
    setup: Setup,
) -> None:
    world = World()
    stores = in_former_life(world, setup)
    log = world.source[0]
    delivered, size = all_offsets(world), len(log.entries)

    log.cut(size - 1)
    transaction = log.begin()
    for _ in range(3):
        log.append(world.now_ms, b"k", b"v", [], transaction)
    log.end(transaction, commit=False)
    relay = stores.start("second", setup)
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), all_offsets(world)) == ({0: ShardReason.LOG_TRUNCATED}, delivered)


@every
def test_a_partition_stands_still_of_which_a_record_lies_where_nothing_was_read(setup: Setup) -> None:
    # Given that a relay has passed aborted records of a log that had nothing else
    world = World()
    stores = Stores(world)
    log = world.source[0]
    transaction = log.begin()
    for _ in range(3):
        log.append(world.now_ms, b"k", b"v", [], transaction)
    log.end(transaction, commit=False)
    first = stores.start("first", setup)
    first.run(1_000)
    first.finish()

    log.cut(1)
    for _ in range(4):
        produce(world, 60_000)
    relay = stores.start("second", setup)
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), all_offsets(world)) == ({0: ShardReason.LOG_TRUNCATED}, [])


def test_progress_names_the_epoch_of_what_was_taken_in_not_of_what_was_read() -> None:
    # Given a relay that takes nothing in, but reads on behind what it reads again
    world = World()
    stores = Stores(world)
    produce(world, 5_000)
    first = stores.start("first", Setup())
    first.run(1_000)
    first.finish()
    for epoch in (1, 2):
        world.source[0].epoch = epoch
        produce(world, 5_000)

    stores.start("second", Setup(suspension=Suspension(ingest=True))).run(6_000)
    committed = decode_progress(*world.committed[0])

    assert (committed.position, committed.cursor.offset, committed.identity.epoch) == (1, 0, 0)


def test_progress_names_the_topic_that_it_is_of() -> None:
    world = World()
    in_former_life(world, Setup())

    committed = decode_progress(*world.committed[0])

    assert committed.identity == (mark_of("a cluster"), "1" * 8, 0, 0)


# -- offsets that are gone


@either
def test_a_group_without_offsets_stands_still_if_its_backlog_shows_a_former_life(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup)
    world.committed.clear()

    relay = stores.start("second", setup)
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), delivered_offsets(world), world.committed) == ({0: ShardReason.OFFSETS_LOST}, [0], {})


@either
def test_where_repeats_are_accepted_nothing_that_waited_is_lost(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup)
    world.committed.clear()

    relay = stores.start("second", setup._replace(accepted=Acceptance(repeats_until_ms=world.now_ms + HOUR_MS)))
    relay.run(120_000, step_ms=1_000)

    assert {*delivered_offsets(world)} == {0, 1, 2, 3}


def test_with_redis_repeats_are_few_as_the_backlog_says_from_where_on_to_read() -> None:
    world = World()
    stores = in_former_life(world, Setup())
    world.committed.clear()

    relay = stores.start("second", Setup(accepted=Acceptance(repeats_until_ms=world.now_ms + HOUR_MS)))
    relay.run(120_000, step_ms=1_000)

    assert delivered_offsets(world) == [0, 1, 2, 3]


def test_a_group_that_a_tool_has_set_to_the_end_delivers_what_waits_in_redis() -> None:
    world = World()
    stores = in_former_life(world, Setup())
    world.committed[0] = Committed(len(world.source[0].entries), "")

    stores.start("second", Setup()).run(120_000, step_ms=1_000)

    assert delivered_offsets(world) == [0, 1, 2, 3]


@pytest.mark.parametrize("setup", [Setup(), Setup(delay_ms=60_000)], ids=["redis", "queue"])
def test_a_group_that_a_tool_has_set_stands_still_if_the_log_ends_before(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup)
    delivered = all_offsets(world)
    world.committed[0] = Committed(len(world.source[0].entries), "")
    world.source[0].cut(2)

    relay = stores.start("second", setup)
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), all_offsets(world)) == ({0: ShardReason.LOG_TRUNCATED}, delivered)


def test_a_group_that_a_tool_has_set_behind_an_open_transaction_goes_on() -> None:
    world = World()
    stores = in_former_life(world, Setup())
    log = world.source[0]
    log.append(world.now_ms, b"k", b"v", [], log.begin())
    world.committed[0] = Committed(len(log.entries), "")

    relay = stores.start("second", Setup())
    relay.run(70_000, step_ms=1_000)

    assert (reasons(relay), delivered_offsets(world)) == ({}, [0, 1, 2, 3])


def test_a_group_that_a_tool_has_set_to_the_end_stands_still_with_bucket_topics() -> None:
    world = World()
    stores = in_former_life(world, BACKENDS["buckets"])
    world.committed[0] = Committed(len(world.source[0].entries), "")

    relay = stores.start("second", BACKENDS["buckets"])
    relay.run(120_000, step_ms=1_000)

    assert (reasons(relay), delivered_offsets(world)) == ({0: ShardReason.OFFSETS_LOST}, [0])


def test_a_group_that_a_tool_has_set_delivers_all_that_waits_in_bucket_topics_once_repeats_are_accepted() -> None:
    world = World()
    stores = in_former_life(world, BACKENDS["buckets"])
    world.committed[0] = Committed(len(world.source[0].entries), "")
    accepted = Acceptance(repeats_until_ms=world.now_ms + HOUR_MS)

    stores.start("second", BACKENDS["buckets"]._replace(accepted=accepted)).run(120_000, step_ms=1_000)

    assert delivered_offsets(world) == [0, 0, 1, 2, 3]


def test_a_relay_that_reads_again_where_repeats_were_accepted_may_be_followed_by_another() -> None:
    # Given a log of two epochs, and a relay that ends while it has read the first of them again
    world = World()
    setup = BACKENDS["buckets"]._replace(chunk=2)
    stores = in_former_life(world, setup)
    world.source[0].epoch = 2
    produce(world, 60_000)
    world.committed[0] = Committed(len(world.source[0].entries), "")
    accepted = Acceptance(repeats_until_ms=world.now_ms + HOUR_MS)
    second = stores.start("second", setup._replace(accepted=accepted))
    while not second.loop.shards or second.loop.shards[0].position == 0:
        second.step()
    second.finish()

    third = stores.start("third", setup)
    third.run(120_000, step_ms=1_000)

    assert (reasons(third), delivered_offsets(world)) == ({}, [0, 0, 1, 2, 3, 4])


@either
def test_a_group_without_offsets_stands_still_if_its_backlog_is_of_a_former_topic(setup: Setup) -> None:
    # Given that brokers delete a group's offsets with the topic that they are of
    world = World()
    stores = in_former_life(world, setup)
    made_anew(world, 2)
    world.committed.clear()

    relay = stores.start("second", setup)
    relay.run(70_000, step_ms=1_000)

    assert (reasons(relay), delivered_offsets(world)) == ({0: ShardReason.TOPIC_CHANGED}, [0])


@either
def test_a_group_without_offsets_begins_with_a_topic_that_was_accepted_in_place_of_a_former_one(setup: Setup) -> None:
    world = World()
    stores = in_former_life(world, setup)
    former = stores.seen()
    made_anew(world, 2)
    world.committed.clear()

    stores.start("second", setup._replace(accepted=Acceptance(SECOND))).run(70_000, step_ms=1_000)

    assert (delivered_offsets(world), former.version(0)) == ([0, 0, 1], None)


@either
def test_a_group_without_offsets_begins_where_the_backlog_is_empty(setup: Setup) -> None:
    world = World()
    produce(world, 60_000)

    Stores(world).start("first", setup).run(70_000, step_ms=1_000)

    assert delivered_offsets(world) == [0]


# -- retention that took what was to be read


def missing_of(relay: Relay) -> dict[int, int]:
    return dict(relay.loop.snapshot().missing)


def test_what_retention_took_of_an_empty_backlog_is_counted() -> None:
    world = World()
    in_former_life(world, Setup(), records=5)
    world.source[0].delete_before(4)

    relay = Stores(world).start("second", Setup())
    relay.run(1_000)

    assert missing_of(relay) == {0: 4}


def test_what_retention_took_is_not_counted_where_it_was_too_old_to_wait() -> None:
    # Given a delay of a minute at most, and a source whose first record is older than that
    world, setup = World(), Setup(max_delay_ms=60_000)
    stores = in_former_life(world, setup)
    stores.start("second", setup).run(100_000, step_ms=1_000)
    produce(world, 59_000)
    later = stores.start("third", setup)
    later.run(30_000, step_ms=1_000)
    produce(world, 100)
    later.run(1_000)
    world.source[0].delete_before(3)

    relay = Stores(world).start("fourth", setup)
    relay.run(1_000)

    assert missing_of(relay) == {}


def test_what_is_missing_does_not_keep_a_partition_from_going_on() -> None:
    world = World()
    in_former_life(world, Setup(), records=5)
    world.source[0].delete_before(4)

    relay = Stores(world).start("second", Setup())
    run_all(world, [relay], 70_000, 1_000)

    assert delivered_offsets(world) == [0, 4, 5]
