"""The consumer of the source topic on a real Kafka: where a source ends, and who owns its partitions."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.process import wait_for
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.records import Sent, produce
from tests.support.relay.world import World, WorldClock

from delaytopic_api.values import Dialect
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.core.commands import NOTHING_DELIVERED, Command, Record, SourceMessage
from delaytopic_relay.core.progress import Progress, decode_progress
from delaytopic_relay.core.recovery import Bounds, SourceTopic
from delaytopic_relay.core.rules import Declared, Rules
from delaytopic_relay.dialects.native import NativeDialect, NativePolicy
from delaytopic_relay.dialects.reading import TopicGlobs
from delaytopic_relay.engine.reading import Reading
from delaytopic_relay.engine.recovery import Origin, Takeover
from delaytopic_relay.errors import TransactionAborted
from delaytopic_relay.kafka.settings import Settings, consumer_settings, producer_settings
from delaytopic_relay.kafka.source import KafkaSource
from delaytopic_relay.kafka.target import KafkaTarget
from delaytopic_relay.kafka.topics import TopicReader

pytestmark = pytest.mark.integration

PARTITIONS = 4
SESSION_MS = 600_000
"""Beyond the end of any test: nothing is put right by a session that ends."""
DIES_WHILE_IT_HANDS_OVER = """
import os, sys
from confluent_kafka import Consumer
from delaytopic_relay.kafka.settings import consumer_settings

servers, topic, group, name, session_ms = sys.argv[1:]

def assigned(consumer, partitions):
    consumer.incremental_assign(partitions)
    print(len(partitions), flush=True)

consumer = Consumer(consumer_settings({"bootstrap.servers": servers}, group, int(session_ms), name, name))
consumer.subscribe([topic], on_assign=assigned, on_revoke=lambda *_: os._exit(1))
while True:
    consumer.poll(0.1)
"""


def unread(messages: Sequence[SourceMessage]) -> list[Command]:
    return []


def noting(offsets: list[int]) -> Callable[[Sequence[SourceMessage]], list[Command]]:
    """Return what reads nothing, and notes the offsets of what it was given."""

    def reading(messages: Sequence[SourceMessage]) -> list[Command]:
        offsets.extend(message.offset() or 0 for message in messages)
        return []

    return reading


class Owner:
    """Knows which partitions it has."""

    def __init__(self) -> None:
        self.partitions: set[int] = set()

    def assigned(self, partitions: Sequence[int]) -> None:
        self.partitions.update(partitions)

    def revoked(self, partitions: Sequence[int]) -> None:
        self.partitions.difference_update(partitions)

    def lost(self, partitions: Sequence[int]) -> None:
        self.partitions.difference_update(partitions)


def test_a_source_ends_behind_what_is_in_open_transactions_and_is_stable_in_front_of_it(kafka: KafkaAddress) -> None:
    topic, connection = unique("source"), Settings({"bootstrap.servers": kafka.bootstrap_servers})
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    writer = Producer({**connection, "transactional.id": unique("writer")})
    writer.init_transactions(10)
    writer.begin_transaction()
    for _ in range(3):
        writer.produce(topic, b"v")
    writer.flush(10)
    asked = TopicReader(connection, [])
    source = KafkaSource(
        consumer_settings(connection, unique("group"), 6_000, "relay"),
        connection,
        SourceTopic(topic),
        lambda *_: {},
        lambda: asked.open_group("none", topic),
        lambda: asked.ask_topic(topic),
    )

    try:
        while_open = source.bounds(0), source.end(0)
    finally:
        source.close()
        writer.abort_transaction(10)

    assert while_open == (Bounds(0, 0), 3)


def five_records(kafka: KafkaAddress) -> tuple[str, Settings]:
    """Produce five records to a new topic of one partition."""
    topic, connection = unique("source"), Settings({"bootstrap.servers": kafka.bootstrap_servers})
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    produce(kafka.bootstrap_servers, topic, [Sent(b"k", b"v", [], 0)] * 5)
    return topic, connection


def offsets_read_at_once(kafka: KafkaAddress) -> list[int]:
    """Read a partition from its second record on, as soon as it is assigned, until one comes that is sent then."""
    topic, connection = five_records(kafka)
    owner, read = Owner(), list[int]()
    reading = noting(read)

    with closing(a_source(connection, topic, "relay", owner)) as source:
        wait_for(lambda: source.poll(1, 1, reading) == {} and owner.partitions)
        source.read_from(0, 1)
        produce(kafka.bootstrap_servers, topic, [Sent(b"k", b"v", [], 0)])
        wait_for(lambda: source.poll(10, 20, reading) is not None and 5 in read)
    return read


def test_a_partition_is_read_from_where_was_asked_however_soon_after_it_was_assigned(kafka: KafkaAddress) -> None:
    # The client's answer to a question about the partition may come before or after that.
    found = [offsets_read_at_once(kafka) for _ in range(3)]

    assert found == [[1, 2, 3, 4, 5]] * 3


def test_a_partition_whose_offset_is_gone_is_read_again_from_where_it_begins(kafka: KafkaAddress) -> None:
    # Given a partition that is read from the beginning, up to its end
    topic, connection = five_records(kafka)
    owner, read = Owner(), list[int]()
    reading = noting(read)

    with closing(a_source(connection, topic, "relay", owner)) as source:
        wait_for(lambda: source.poll(1, 20, reading) == {} and owner.partitions)
        source.read_from(0, 0)
        wait_for(lambda: source.poll(10, 20, reading) is not None and len(read) == 5)

        # When an offset is to be read that was deleted
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        (deleted,) = admin.delete_records([TopicPartition(topic, 0, 3)]).values()
        deleted.result(30)
        source.read_from(0, 1)
        with pytest.raises(TransactionAborted, match="the source no longer has what is to be read next"):
            wait_for(lambda: source.poll(10, 20, reading) and False)

        # Then it can be read from the first that is there
        source.read_from(0, 3)
        wait_for(lambda: source.poll(10, 20, reading) is not None and len(read) == 7)

    assert read == [0, 1, 2, 3, 4, 3, 4]


def a_source(connection: Settings, topic: str, name: str, owner: Owner) -> KafkaSource:
    group = f"group.{topic}"
    settings = consumer_settings(connection, group, SESSION_MS, name, name)
    asked = TopicReader(connection, [])
    open_group, ask_topic = partial(asked.open_group, group, topic), partial(asked.ask_topic, topic)
    source = KafkaSource(settings, connection, SourceTopic(topic), lambda *_: {}, open_group, ask_topic)
    source.subscribe(owner)
    return source


RULES = Rules(Dialect.NATIVE, 1_000, "")
READING = Reading(Declared(RULES), lambda _: NativeDialect(NativePolicy("target", TopicGlobs([]), 1_000)))


ORIGIN = Origin(SourceTopic("source"))


class Releasing(Owner):
    """Hands over what it loses, as a relay does whose tick was aborted and that has not recovered since."""

    takeover: Takeover

    def revoked(self, partitions: Sequence[int]) -> None:
        self.takeover.release(partitions)
        super().revoked(partitions)


def test_what_is_revoked_after_an_aborted_transaction_names_no_owner_and_what_stays_names_the_same(
    kafka: KafkaAddress,
) -> None:
    # Given a relay that has committed for all partitions, and aborted what it did since
    topic, connection = unique("source"), Settings({"bootstrap.servers": kafka.bootstrap_servers})
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, PARTITIONS)])
    first, second = Releasing(), Owner()
    target = KafkaTarget(partial(_settings_of, connection), topic, unique("relay"))

    with closing(target), closing(a_source(connection, topic, "relay-a", first)) as source:
        first.takeover = Takeover(
            source,
            target,
            FixedBacklog(1_000),
            QuietEvents(),
            lambda owner: False,
            READING,
            ORIGIN,
            WorldClock(World()),
        )
        wait_for(lambda: source.poll(1, 20, unread) == {} and len(first.partitions) == PARTITIONS)
        target.begin()
        progress = Progress(0, 0, NOTHING_DELIVERED, target.owner)
        target.commit(dict.fromkeys(range(PARTITIONS), progress), source.group_metadata())
        target.begin()
        target.send([Record(topic, b"never seen", None, [], 0)])
        target.abort()

        # When another relay gets a part of them
        with closing(a_source(connection, topic, "relay-b", second)) as another:
            wait_for(
                lambda: (
                    source.poll(1, 20, unread) == another.poll(1, 20, unread) == {}
                    and len(first.partitions) == len(second.partitions) == PARTITIONS // 2
                )
            )
            committed, kept = source.committed([*range(PARTITIONS)]), {*first.partitions}

    expected = {each: progress if each in kept else progress._replace(owner="") for each in committed}
    assert {partition: decode_progress(*each) for partition, each in committed.items()} == expected


def _settings_of(connection: Settings, owner: str | None) -> Settings:
    return producer_settings(connection, "relay", owner, 1 << 20)


@pytest.mark.takes_long("a group comes to rest three times, and is looked at for some seconds")
def test_partitions_get_an_owner_whose_former_one_died_while_it_handed_them_over_and_starts_again_under_its_name(
    kafka: KafkaAddress,
) -> None:
    topic, connection = unique("source"), Settings({"bootstrap.servers": kafka.bootstrap_servers})
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, PARTITIONS)])
    arguments = (kafka.bootstrap_servers, topic, f"group.{topic}", "relay-a", str(SESSION_MS))
    dies = subprocess.Popen([sys.executable, "-c", DIES_WHILE_IT_HANDS_OVER, *arguments], stdout=subprocess.PIPE)
    assert dies.stdout is not None
    assert int(dies.stdout.readline()) == PARTITIONS
    there, again = Owner(), Owner()

    with closing(a_source(connection, topic, "relay-b", there)) as staying:
        wait_for(lambda: staying.poll(1, 20, unread) == {} and dies.poll() is not None)
        dies.stdout.close()
        with closing(a_source(connection, topic, "relay-a", again)) as started:
            wait_for(
                lambda: (
                    staying.poll(1, 20, unread) == started.poll(1, 20, unread) == {}
                    and len(there.partitions) == len(again.partitions) == PARTITIONS // 2
                )
            )

    assert there.partitions.isdisjoint(again.partitions)
