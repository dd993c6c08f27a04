"""Reading on trial on a real Kafka: which batch takes too much memory, and where it ends."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.batches import MIB, produce_batch
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.kafka.examining import KafkaExaminer, Trial
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.ports import TooLarge

pytestmark = pytest.mark.integration

LIMIT = 32 * MIB
SMALL = [Sent(b"k", b"small", [], 0)] * 10


def a_topic(kafka: KafkaAddress) -> str:
    topic = unique("unpacks")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 1)])
    return topic


def examiner_of(kafka: KafkaAddress, topic: str, limit_bytes: int = LIMIT) -> KafkaExaminer:
    connection = Settings({"bootstrap.servers": kafka.bootstrap_servers})
    return KafkaExaminer(Trial(connection, unique("group"), "relay", topic, limit_bytes))


def verdict(examiner: KafkaExaminer, start: int, until: int = 0) -> TooLarge | None:
    """Await the verdict of an examiner, however long it takes."""

    def told() -> tuple[TooLarge | None] | None:
        try:
            return (examiner.examine(0, start, until),)
        except Unavailable:
            return None

    found: tuple[TooLarge | None] = wait_for(told)
    return found[0]


@pytest.mark.takes_long("a dozen processes unpack the batch one after another")
@pytest.mark.parametrize(
    "compression", ["gzip", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("lz4", "zstd"))]
)
def test_a_batch_that_unpacks_to_more_than_the_limit_is_found_with_its_end(
    kafka: KafkaAddress, compression: str
) -> None:
    topic = a_topic(kafka)
    produce(kafka.bootstrap_servers, topic, SMALL)
    produce_batch(kafka.bootstrap_servers, topic, [16 * MIB] * 5, compression)
    produce(kafka.bootstrap_servers, topic, SMALL)

    with closing(examiner_of(kafka, topic)) as examiner:
        found = verdict(examiner, 0)

    assert found == TooLarge(10, 15, LIMIT)


@pytest.mark.takes_long("a process starts, and reads to the end")
def test_what_fits_is_no_matter(kafka: KafkaAddress) -> None:
    topic = a_topic(kafka)
    produce_batch(kafka.bootstrap_servers, topic, [8 * MIB])
    produce(kafka.bootstrap_servers, topic, SMALL)

    with closing(examiner_of(kafka, topic)) as examiner:
        assert verdict(examiner, 0) is None


@pytest.mark.nightly  # each day one that fits is no matter
def test_several_batches_that_fit_one_by_one_are_no_matter(kafka: KafkaAddress) -> None:
    topic = a_topic(kafka)
    for _ in range(6):
        produce_batch(kafka.bootstrap_servers, topic, [12 * MIB])

    with closing(examiner_of(kafka, topic)) as examiner:
        assert verdict(examiner, 0) is None


@pytest.mark.takes_long("several processes unpack the batch one after another")
def test_a_verdict_holds_until_reading_starts_behind_the_batch(kafka: KafkaAddress) -> None:
    topic = a_topic(kafka)
    produce_batch(kafka.bootstrap_servers, topic, [80 * MIB, 1])
    produce(kafka.bootstrap_servers, topic, SMALL)

    with closing(examiner_of(kafka, topic)) as examiner:
        first = verdict(examiner, 0)
        at_once = examiner.examine(0, 1, 0)
        behind = verdict(examiner, 2)

    assert (first, at_once, behind) == (TooLarge(0, 2, LIMIT), TooLarge(0, 2, LIMIT), None)


@pytest.mark.nightly
@pytest.mark.takes_long("no broker answers, and the client waits for ten seconds")
def test_where_nothing_can_be_read_on_trial_nothing_is_found() -> None:
    connection = Settings({"bootstrap.servers": "127.0.0.1:1"})
    with closing(KafkaExaminer(Trial(connection, "group", "relay", "topic", LIMIT))) as examiner:
        assert verdict(examiner, 0) is None
