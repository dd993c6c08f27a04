"""Logs that were truncated and have grown again, as a real broker's leader epochs tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from tests.harness.fixtures import QUICK_SESSIONS, QUICK_START
from tests.harness.names import unique
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_relay.kafka.settings import Settings, consumer_settings
from delaytopic_relay.kafka.source import KafkaSource
from delaytopic_relay.kafka.topics import TopicReader
from delaytopic_relay.ports import Place

pytestmark = pytest.mark.integration

CUT, ABORTED, REPLACED = "cut", "aborted", "replaced"


class Seen(NamedTuple):
    """Findings of sources on three logs of a broker that started three times."""

    epochs: dict[str, list[int]]
    """Of the log's end, after each start at which it was looked at."""
    cut_before: list[bool]
    """Of the log that is cut later, while it is whole: below its place of the first epoch, and of the second."""
    cut_since: dict[str, bool]
    """Of the same log, once it was cut and has grown beyond these places."""
    aborted: list[bool]
    """With nothing but aborted records behind a place, and with others behind these."""
    replaced: dict[str, bool]
    """Of the log whose last records were cut off, and aborted ones written in their place."""


@contextmanager
def a_source(kafka: KafkaServer, name: str) -> Iterator[tuple[KafkaSource, int]]:
    """A source of a topic of one partition, and the leader epoch of its end."""
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    asked = TopicReader(connection, [name])
    topic = asked.source_topic(name)
    settings = consumer_settings(connection, unique("group"), 6_000, "relay")
    source = KafkaSource(
        settings,
        connection,
        topic,
        partial(asked.ask_ends, name),
        lambda: asked.open_group("none", name),
        lambda: asked.ask_topic(name),
    )
    with closing(source):
        epochs = wait_for(lambda: source.look([0])().epochs)
        assert source.look([0])().topic == topic
        yield source, epochs[0]


def is_cut(source: KafkaSource, places: Sequence[Place]) -> list[bool]:
    return [source.cut_below({0: place})[0] for place in places]


def cut(directory: Path, name: str, end: int) -> None:
    """Shorten a log on disk to the batches that begin below an offset, as an unclean election makes it."""
    (log,) = directory.glob(f"**/{name}-0/00000000000000000000.log")
    data, place = log.read_bytes(), 0
    while place < len(data) and int.from_bytes(data[place : place + 8], "big") < end:
        place += 12 + int.from_bytes(data[place + 8 : place + 12], "big")
    log.write_bytes(data[:place])
    for index in log.parent.glob("*.*index"):
        index.write_bytes(b"")
    for snapshot in log.parent.glob("*.snapshot"):
        snapshot.unlink()
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", ".kafka_cleanshutdown"):
        (log.parent.parent / checkpoint).unlink(missing_ok=True)


def abort_a_batch(kafka: KafkaServer, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": unique("aborting")})
    producer.init_transactions(60)
    producer.begin_transaction()
    for _ in range(10):
        producer.produce(topic, b"v", b"k")
    producer.flush(60)
    producer.abort_transaction(60)


def produce_batches(kafka: KafkaServer, topic: str, count: int) -> None:
    for _ in range(count):
        produce(kafka.bootstrap_servers, topic, [Sent(b"k", b"v")] * 10)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Each start of a broker begins an epoch of all logs: they have them in common."""
    directory = tmp_path_factory.mktemp("kafka")
    with KafkaServer(directory, settings=QUICK_SESSIONS, heap_mib=384, jvm_options=QUICK_START) as kafka:
        epochs: dict[str, list[int]] = {CUT: [], ABORTED: [], REPLACED: []}
        create_topics(kafka.bootstrap_servers, [TopicPlan(topic) for topic in epochs])

        # In the first epoch each gets records
        for topic, count in ((CUT, 10), (ABORTED, 1), (REPLACED, 1)):
            produce_batches(kafka, topic, count)
            with a_source(kafka, topic) as (_, epoch):
                epochs[topic].append(epoch)

        # In the second one more, which are aborted in one of the logs
        kafka.restart()
        produce_batches(kafka, CUT, 3)
        with a_source(kafka, CUT) as (source, epoch):
            epochs[CUT].append(epoch)
            cut_before = is_cut(source, [Place(100, epochs[CUT][0], 100), Place(130, epoch, 130)])
        abort_a_batch(kafka, ABORTED)
        with a_source(kafka, ABORTED) as (source, epoch):
            epochs[ABORTED].append(epoch)
            behind = Place(21, epochs[ABORTED][0], 10)
            aborted = is_cut(source, [behind])
            produce_batches(kafka, ABORTED, 1)
            aborted += is_cut(source, [behind])
        produce_batches(kafka, REPLACED, 1)
        with a_source(kafka, REPLACED) as (_, epoch):
            epochs[REPLACED].append(epoch)

        # Then two are cut in the second epoch, and grow again in the third: one by nothing but aborted records
        kafka.stop()
        cut(directory, CUT, 110)
        cut(directory, REPLACED, 10)
        kafka.start()
        produce_batches(kafka, CUT, 6)
        with a_source(kafka, CUT) as (source, epoch):
            first, second = epochs[CUT]
            epochs[CUT].append(epoch)
            places = {
                "all of the first epoch": Place(100, first, 100),
                "what was left of the second": Place(110, second, 110),
                "what was cut off": Place(130, second, 130),
                "what has grown since": Place(130, epoch, 130),
                "behind what was left, without a record": Place(130, second, 110),
            }
            cut_since = dict(zip(places, is_cut(source, [*places.values()]), strict=True))
        for _ in range(2):
            abort_a_batch(kafka, REPLACED)
        with a_source(kafka, REPLACED) as (source, _):
            first, second = epochs[REPLACED]
            places = {
                "its last record was replaced": Place(20, second, 20),
                "a marker is in the place of its last record": Place(22, second, 21),
                "it was read up to there before": Place(20, first, 10),
                "nothing was found there, either": Place(20, -1, 10),
                "a record would have been found": Place(20, -1, 5),
            }
            replaced = dict(zip(places, is_cut(source, [*places.values()]), strict=True))
    return Seen(epochs, cut_before, cut_since, aborted, replaced)


def test_a_log_that_was_cut_below_a_position_and_has_grown_beyond_it_is_told_from_one_that_was_not(seen: Seen) -> None:
    assert seen.cut_before == [False, False]
    assert seen.cut_since == {
        "all of the first epoch": False,
        "what was left of the second": False,
        "what was cut off": True,
        "what has grown since": False,
        "behind what was left, without a record": True,
    }


def test_a_log_whose_later_epochs_have_nothing_but_aborted_records_below_a_position_was_not_cut(seen: Seen) -> None:
    assert seen.aborted == [False, False]


def test_a_log_that_has_grown_beyond_a_position_by_nothing_but_aborted_records_was_cut_if_its_last_record_is_gone(
    seen: Seen,
) -> None:
    assert seen.replaced == {
        "its last record was replaced": True,
        "a marker is in the place of its last record": True,
        "it was read up to there before": False,
        "nothing was found there, either": False,
        "a record would have been found": True,
    }


def test_each_start_of_a_broker_begins_an_epoch(seen: Seen) -> None:
    assert [found == sorted(set(found)) for found in seen.epochs.values()] == [True] * 3
