"""Logs that were truncated and have grown again, as a real broker's leader epochs tell."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from tests.harness.names import unique
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_relay.core.recovery import SourceTopic
from delaytopic_relay.kafka.settings import Settings, consumer_settings
from delaytopic_relay.kafka.source import KafkaSource
from delaytopic_relay.kafka.topics import TopicReader
from delaytopic_relay.ports import Place

pytestmark = pytest.mark.integration

TOPIC = "orders"


def a_source(kafka: KafkaServer) -> tuple[KafkaSource, SourceTopic]:
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    asked = TopicReader(connection, [TOPIC])
    topic = asked.source_topic(TOPIC)
    settings = consumer_settings(connection, unique("group"), 6_000, "relay")
    source = KafkaSource(
        settings,
        connection,
        topic,
        partial(asked.ask_ends, TOPIC),
        lambda: asked.ask_group("none", TOPIC),
        lambda: asked.ask_topic(TOPIC),
    )
    return source, topic


def epoch_of_the_end(source: KafkaSource, topic: SourceTopic) -> int:
    """The leader epoch of the log's end, as soon as its partition has a leader."""
    epochs = wait_for(lambda: source.look([0])().epochs)
    assert source.look([0])().topic == topic
    epoch: int = epochs[0]
    return epoch


def cut(directory: Path, end: int) -> None:
    """Shorten a log on disk to the batches that begin below an offset, as an unclean election makes it."""
    (log,) = directory.glob(f"**/{TOPIC}-0/00000000000000000000.log")
    data, place = log.read_bytes(), 0
    while place < len(data) and int.from_bytes(data[place : place + 8], "big") < end:
        place += 12 + int.from_bytes(data[place + 8 : place + 12], "big")
    log.write_bytes(data[:place])
    for index in log.parent.glob("*.*index"):
        index.write_bytes(b"")
    for snapshot in log.parent.glob("*.snapshot"):
        snapshot.unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
        (log.parent.parent / name).unlink(missing_ok=True)


def aborted_batch(kafka: KafkaServer) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": unique("aborting")})
    producer.init_transactions(60)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce(TOPIC, b"v", b"k")
    producer.flush(60)
    producer.abort_transaction(60)


def batches(kafka: KafkaServer, count: int) -> None:
    for _ in range(count):
        produce(kafka.bootstrap_servers, TOPIC, [Sent(b"k", b"v")] * 10)


@pytest.mark.takes_long("a broker starts three times")
def test_a_log_that_was_cut_below_a_position_and_has_grown_beyond_it_is_told_from_one_that_was_not(
    own_kafka: KafkaServer,
) -> None:
    # Given a position of the first epoch, and one of the second
    create_topics(own_kafka.bootstrap_servers, [TopicPlan(TOPIC)])
    batches(own_kafka, 10)
    source, topic = a_source(own_kafka)
    with closing(source):
        first = epoch_of_the_end(source, topic)
    own_kafka.restart()
    batches(own_kafka, 3)
    source, _ = a_source(own_kafka)
    with closing(source):
        second = epoch_of_the_end(source, topic)
        whole = [source.cut_below({0: place})[0] for place in (Place(100, first, 100), Place(130, second, 130))]

    # When the log is cut in the second epoch, and grows again
    own_kafka.stop()
    cut(own_kafka.directory, 110)
    own_kafka.start()
    batches(own_kafka, 6)
    source, _ = a_source(own_kafka)
    with closing(source):
        third = epoch_of_the_end(source, topic)
        places = (
            *(Place(100, first, 100), Place(110, second, 110), Place(130, second, 130), Place(130, third, 130)),
            Place(130, second, 110),
        )
        shortened = [source.cut_below({0: place})[0] for place in places]

    assert (first < second < third, whole, shortened) == (True, [False, False], [False, False, True, False, True])


@pytest.mark.takes_long("a broker starts twice")
def test_a_log_whose_later_epochs_have_nothing_but_aborted_records_below_a_position_was_not_cut(
    own_kafka: KafkaServer,
) -> None:
    # Given a position behind an aborted transaction, whose last record is of the epoch before that
    create_topics(own_kafka.bootstrap_servers, [TopicPlan(TOPIC)])
    batches(own_kafka, 1)
    source, topic = a_source(own_kafka)
    with closing(source):
        first = epoch_of_the_end(source, topic)
    own_kafka.restart()
    aborted_batch(own_kafka)
    source, _ = a_source(own_kafka)
    with closing(source):
        second = epoch_of_the_end(source, topic)
        at_the_end = source.cut_below({0: Place(21, first, 10)})
        batches(own_kafka, 1)
        grown = source.cut_below({0: Place(21, first, 10)})

    assert (first < second, at_the_end, grown) == (True, {0: False}, {0: False})


@pytest.mark.takes_long("a broker starts three times")
def test_a_log_that_has_grown_beyond_a_position_by_nothing_but_aborted_records_was_cut_if_its_last_record_is_gone(
    own_kafka: KafkaServer,
) -> None:
    # Given a position behind a record of the second epoch
    create_topics(own_kafka.bootstrap_servers, [TopicPlan(TOPIC)])
    batches(own_kafka, 1)
    source, topic = a_source(own_kafka)
    with closing(source):
        first = epoch_of_the_end(source, topic)
    own_kafka.restart()
    batches(own_kafka, 1)
    source, _ = a_source(own_kafka)
    with closing(source):
        second = epoch_of_the_end(source, topic)

    # When the log is cut in front of that, and two transactions are aborted
    own_kafka.stop()
    cut(own_kafka.directory, 10)
    own_kafka.start()
    aborted_batch(own_kafka)
    aborted_batch(own_kafka)
    source, _ = a_source(own_kafka)
    with closing(source):
        places = {
            "its last record was replaced": Place(20, second, 20),
            "a marker is in the place of its last record": Place(22, second, 21),
            "it was read up to there before": Place(20, first, 10),
            "nothing was found there, either": Place(20, -1, 10),
            "a record would have been found": Place(20, -1, 5),
        }
        found = {name: source.cut_below({0: place})[0] for name, place in places.items()}

    assert found == dict(zip(places, [True, True, False, False, True], strict=True))
