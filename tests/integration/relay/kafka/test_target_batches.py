"""Batches of plain schedules through the producer of a relay to a real broker: they arrive as single records do."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, cast

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.process import wait_for
from tests.support.relay.route import read_topic

from delaytopic_api.records import Headers, Receipt, receipt_parts
from delaytopic_gateway.client.raw_records import RawRecord
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.core.commands import ANY_PARTITION, NO_CONTROL_HEADER, Schedule
from delaytopic_relay.core.entries import SPEEDUPS
from delaytopic_relay.delivery.batches import Batch, one_by_one
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.errors import Fenced, Unanswered
from delaytopic_relay.kafka.settings import Settings, producer_settings
from delaytopic_relay.kafka.target import KafkaTarget

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not SPEEDUPS, reason="NOT TESTED: single records leave where the speedups are not there"),
]

SHARD, SENT_MS, SOURCE = 3, 1_795_269_686_271, "source"
AT = ("deliver-at", b"5")
LIMIT_BYTES = 1_000
TOO_LARGE = "Broker: Message size too large"
MakeTarget = Callable[..., KafkaTarget]


@pytest.fixture
def make_target(kafka: KafkaAddress) -> Iterator[MakeTarget]:
    """Makes targets, with transactions of the owner that is named, and with these settings of the client."""
    targets: list[KafkaTarget] = []

    def make(owner: str | None = None, **changes: Any) -> KafkaTarget:
        named = {name.replace("_", "."): value for name, value in changes.items()}
        targets.append(KafkaTarget(partial(settings_of, kafka, named), SOURCE, owner))
        return targets[-1]

    yield make
    for target in targets:
        target.abort()
        target.close()


def settings_of(kafka: KafkaAddress, changes: Settings, owner: str | None) -> Settings:
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    return {**producer_settings(connection, "relay", owner, 1 << 20), **changes}


def topic_of(kafka: KafkaAddress, partitions: int = 1, **config: str) -> str:
    topic = unique("topic")
    plan = TopicPlan(topic, partitions, {name.replace("_", "."): value for name, value in config.items()})
    create_topics(kafka.bootstrap_servers, [plan])
    return topic


def batch_of(topic: str, schedules: Sequence[Schedule], partition: int = ANY_PARTITION) -> Batch:
    return Batch(topic, partition, [*schedules], receipt_parts(SOURCE, SHARD, SENT_MS))


def numbered(count: int, *, first: int = 0, value: bytes = b"value", large: int | None = None) -> list[Schedule]:
    """Schedules with these offsets, of which one may be larger than `LIMIT_BYTES`."""
    larger = b"x" * 2 * LIMIT_BYTES
    return [
        Schedule(5, offset, b"key", larger if offset == large else value, [AT], 0)
        for offset in range(first, first + count)
    ]


def read(kafka: KafkaAddress, topic: str, records: int) -> list[RawRecord]:
    """Read a topic when it has so many: a commit has returned a little before its records are seen."""
    found: list[RawRecord] = []

    def arrived() -> bool:
        found[:] = read_topic(kafka.bootstrap_servers, topic)
        return len(found) >= records

    wait_for(arrived, lambda: f"{topic} has {len(found)} records")
    return found


def offsets(kafka: KafkaAddress, topic: str, records: int = 0) -> list[int]:
    """The source offsets that receipts tell, in the order of the topic's only partition."""
    return [offset_of(record) for record in read(kafka, topic, records)]


def offset_of(record: RawRecord) -> int:
    return Receipt.parse(record.headers[-1][1]).offset


# -- what arrives

TIMESTAMPS_MS = (None, 0, 1_795_269_600_000, 2**63 - 1)
CONTENTS = (None, b"", b"\x00\xff", b"x" * 70_000)
HEADERS: list[tuple[Headers | None, int]] = [
    (None, NO_CONTROL_HEADER),
    ([], NO_CONTROL_HEADER),
    ([AT], 0),
    ([("a", b"1"), AT, ("b", None)], 1),
    ([("a", None), ("a", b""), ("", b"1"), ("", None), ("a", b"\x00\xff")], NO_CONTROL_HEADER),
    ([*[("n" * 300, b"v" * 300)] * 20, AT], 20),
]


def every_kind() -> list[Schedule]:
    kinds = enumerate(product(CONTENTS, CONTENTS, HEADERS))
    return [
        Schedule(5, offset, key, value, *headers, timestamp_ms=TIMESTAMPS_MS[offset % len(TIMESTAMPS_MS)])
        for offset, (key, value, headers) in kinds
    ]


def arrived(kafka: KafkaAddress, topic: str, *, placed: bool) -> list[tuple[Any, ...]]:
    """The records by their source offsets; where partitions are by key, without those of records that have none."""
    records = sorted(read(kafka, topic, len(every_kind())), key=offset_of)
    return [
        (record.at.partition if placed or record.key is not None else None, record.key, record.value, record.headers)
        for record in records
    ]


@pytest.mark.parametrize("partition", [ANY_PARTITION, 2])
@pytest.mark.parametrize("transactional", [False, True])
def test_what_arrives_is_what_arrives_of_pythons_records(
    kafka: KafkaAddress, make_target: MakeTarget, partition: int, transactional: bool
) -> None:
    together, one_each = topic_of(kafka, 4), topic_of(kafka, 4)
    target = make_target(unique("owner") if transactional else None)

    target.begin()
    target.send([batch_of(together, every_kind(), partition)])
    target.send([*one_by_one([batch_of(one_each, every_kind(), partition)])])
    assert target.flush() == []
    if transactional:
        target.commit({}, cast(Any, None))

    of_batches = arrived(kafka, together, placed=partition >= 0)
    assert of_batches == arrived(kafka, one_each, placed=partition >= 0)
    assert [(key, value) for _, key, value, _ in of_batches] == [(each.key, each.value) for each in every_kind()]


def test_batches_and_records_between_them_arrive_in_their_order(kafka: KafkaAddress, make_target: MakeTarget) -> None:
    topic, target = topic_of(kafka), make_target()
    between = one_by_one([batch_of(topic, numbered(2, first=50))])

    target.send([batch_of(topic, numbered(50)), *between, batch_of(topic, numbered(50, first=52))])

    assert target.flush() == []
    assert offsets(kafka, topic, 102) == [*range(102)]


@pytest.mark.parametrize("transactional", [False, True])
def test_a_full_queue_is_waited_for_and_all_arrive_once_in_their_order(
    kafka: KafkaAddress, make_target: MakeTarget, transactional: bool
) -> None:
    topic = topic_of(kafka)
    target = make_target(unique("owner") if transactional else None, queue_buffering_max_messages=20)

    target.begin()
    target.send([batch_of(topic, numbered(500))])
    assert target.flush() == []
    if transactional:
        target.commit({}, cast(Any, None))

    assert offsets(kafka, topic, 500) == [*range(500)]


def test_what_was_sent_in_a_transaction_that_is_aborted_is_not_seen(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    topic, target = topic_of(kafka), make_target(unique("owner"))

    target.begin()
    target.send([batch_of(topic, numbered(100))])
    target.abort()
    target.begin()
    target.send([batch_of(topic, numbered(3, first=100))])
    assert target.flush() == []
    target.commit({}, cast(Any, None))

    assert offsets(kafka, topic, 3) == [100, 101, 102]


# -- what Kafka refuses


def test_a_record_that_the_broker_refuses_is_told_without_its_name_and_with_it_when_it_is_sent_again(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    topic, target = topic_of(kafka, max_message_bytes=str(LIMIT_BYTES)), make_target()
    batch = batch_of(topic, numbered(3, large=1))

    target.send([batch])
    first = target.flush()
    target.send([batch])
    again = target.flush()

    unnamed = Refusal(f"{topic}: {TOO_LARGE}", too_large=True)
    assert set(first) == {unnamed}
    assert again == [unnamed._replace(partition=SHARD, offset=1)]
    assert {0, 2} <= set(offsets(kafka, topic))


def test_a_transaction_with_a_record_that_the_broker_refuses_is_not_seen_and_the_next_one_hears_nothing_of_it(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    narrow, wide = topic_of(kafka, max_message_bytes=str(LIMIT_BYTES)), topic_of(kafka)
    target = make_target(unique("owner"))

    target.begin()
    target.send([batch_of(narrow, numbered(100, large=1))])
    refused = target.flush()
    target.abort()
    target.replace()
    target.begin()
    target.send([batch_of(wide, numbered(3))])
    clean = target.flush()
    target.commit({}, cast(Any, None))

    assert set(refused) == {Refusal(f"{narrow}: {TOO_LARGE}", too_large=True)}
    assert clean == []
    assert (offsets(kafka, wide, 3), offsets(kafka, narrow)) == ([0, 1, 2], [])


def test_the_producer_after_one_that_was_refused_in_a_transaction_names_the_record(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    topic, target = topic_of(kafka, max_message_bytes=str(LIMIT_BYTES)), make_target(unique("owner"))
    target.begin()
    target.send([batch_of(topic, numbered(3, large=1))])
    target.flush()
    target.abort()

    target.replace()
    target.begin()
    target.send([batch_of(topic, numbered(3, large=1))])
    named = target.flush()
    target.abort()

    assert named == [Refusal(f"{topic}: {TOO_LARGE}", too_large=True, partition=SHARD, offset=1)]
    assert offsets(kafka, topic) == []


def test_a_record_that_the_client_refuses_is_named_and_those_around_it_arrive(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    topic, target = topic_of(kafka), make_target(message_max_bytes=LIMIT_BYTES, batch_size=LIMIT_BYTES)

    target.send([batch_of(topic, numbered(5, large=2))])

    assert [(refusal.too_large, refusal.partition, refusal.offset) for refusal in target.flush()] == [(True, SHARD, 2)]
    assert offsets(kafka, topic, 4) == [0, 1, 3, 4]


def test_a_topic_that_is_not_there_is_named_with_the_source_partition_that_sends_to_it(make_target: MakeTarget) -> None:
    target, topic = make_target(topic_metadata_propagation_max_ms=100), unique("nowhere")

    target.send([batch_of(topic, numbered(3))])
    with pytest.raises(Unanswered) as caught:
        target.flush()

    assert caught.value.senders == {(topic, -1): {SHARD}}


@pytest.mark.parametrize("owner", [True, False])
def test_what_is_given_up_names_its_topic_and_source_partition_and_nothing_else_does(
    kafka: KafkaAddress, make_target: MakeTarget, owner: bool
) -> None:
    good, bad = topic_of(kafka), unique("nowhere")
    target = make_target(unique("owner") if owner else None)

    target.begin()
    target.send([batch_of(good, numbered(3))])
    target.send([batch_of(bad, numbered(3))])
    with pytest.raises(Unanswered) as caught:
        target.flush(lambda silent_ms: silent_ms > 500)
    target.abort()

    assert caught.value.senders == {(bad, -1): {SHARD}}
    assert caught.value.acknowledged
    assert len(offsets(kafka, good)) == (0 if owner else 3)


# -- other producers under the same name


def test_a_producer_that_is_fenced_says_so_and_the_one_that_takes_its_place_sends(
    kafka: KafkaAddress, make_target: MakeTarget
) -> None:
    topic, owner = topic_of(kafka), unique("owner")
    target = make_target(owner)
    target.begin()
    target.fence(owner)

    with pytest.raises(Fenced):
        send_and_flush(target, batch_of(topic, numbered(1_000)))
    target.abort()
    target.replace()
    target.begin()
    target.send([batch_of(topic, numbered(3))])
    assert target.flush() == []
    target.commit({}, cast(Any, None))

    assert offsets(kafka, topic, 3) == [0, 1, 2]


def send_and_flush(target: KafkaTarget, batch: Batch) -> None:
    """Whichever of the two serves the client's callbacks notices first."""
    target.send([batch])
    target.flush()


def test_of_two_targets_each_sends_through_its_own_producer(kafka: KafkaAddress, make_target: MakeTarget) -> None:
    topics = [topic_of(kafka), topic_of(kafka)]
    kept, dropped = make_target(unique("owner")), make_target(unique("owner"))

    for target, topic in zip([kept, dropped], topics, strict=True):
        target.begin()
        target.send([batch_of(topic, numbered(10))])
        assert target.flush() == []
    dropped.abort()
    kept.commit({}, cast(Any, None))

    assert (offsets(kafka, topics[0], 10), offsets(kafka, topics[1])) == ([*range(10)], [])


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("flushes", [True, False])
def test_a_target_may_end_with_records_on_the_way(kafka: KafkaAddress, closes: bool, flushes: bool) -> None:
    topic = topic_of(kafka)
    target = KafkaTarget(partial(settings_of, kafka, {}), SOURCE, None)

    target.send([batch_of(topic, numbered(1_000))])
    if flushes:
        assert target.flush() == []
    if closes:
        target.close()
    del target
    gc.collect()

    arrived_in_order = offsets(kafka, topic)
    assert arrived_in_order == [*range(1_000 if flushes else len(arrived_in_order))]
