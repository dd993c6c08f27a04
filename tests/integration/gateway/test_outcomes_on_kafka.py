"""Outcomes read from a real Kafka, where the test writes what relays write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.records import Sent, produce

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.errors import RecordMissingError, TopicMissingError
from delaytopic_gateway.kafka.endings import LONGEST_BYTES, Endings, Search
from delaytopic_gateway.kafka.outcomes import MOST_READ, KafkaOutcomeTopics

pytestmark = pytest.mark.integration

SOURCE = "shop.delayed"
LAST_OFFSET = (1 << 63) - 1


@dataclass
class Written:
    """A topic of outcomes with two partitions, and its reader."""

    servers: str
    topic: str
    reader: KafkaOutcomeTopics

    def write(self, *outcomes: Outcome) -> None:
        records = [
            Sent(
                key=(each.id or "").encode(),
                value=each.model_dump_json(by_alias=True).encode(),
                partition=each.source.partition,
            )
            for each in outcomes
        ]
        produce(self.servers, self.topic, records)


@pytest.fixture
def written(kafka: KafkaAddress) -> Written:
    topic = unique("outcomes")
    create_topics(kafka.bootstrap_servers, [TopicPlan(topic, 2)])
    reader = KafkaOutcomeTopics({"bootstrap.servers": kafka.bootstrap_servers})
    return Written(kafka.bootstrap_servers, topic, reader)


def place(offset: int, partition: int = 1) -> RecordPlace:
    return RecordPlace(topic=SOURCE, partition=partition, offset=offset)


def ended(offset: int, name: str = "order-17", partition: int = 1, ended_ms: int = 17) -> Outcome:
    return Outcome(outcome=Ending.DELIVERED, id=name, ended_ms=ended_ms, source=place(offset, partition))


def test_the_end_of_a_schedule_is_found_from_an_offset_on(written: Written) -> None:
    written.write(ended(5), ended(7), ended(9))

    assert written.reader.first(written.topic, place(7), 0, 0) == Search(ended(7), 1)


def test_a_schedule_that_has_not_ended_is_searched_to_the_end(written: Written) -> None:
    written.write(ended(5), ended(9))

    assert written.reader.first(written.topic, place(7), 1, 0) == Search(None, 2)


def test_the_end_of_a_schedule_is_awaited(written: Written) -> None:
    with ThreadPoolExecutor(1) as threads:
        search = threads.submit(written.reader.first, written.topic, place(7), 0, 30)
        written.write(ended(5), ended(7))

        assert search.result(30) == Search(ended(7), 1)


def test_a_schedule_that_does_not_end_is_awaited_no_longer_than_asked(written: Written) -> None:
    assert written.reader.first(written.topic, place(7), 0, 0.3) == Search(None, 0)


def test_one_search_reads_a_bounded_number_of_outcomes(written: Written) -> None:
    produce(written.servers, written.topic, [Sent(value=b"{}", partition=1)] * (MOST_READ + 1_500))
    written.write(ended(7))

    first = written.reader.first(written.topic, place(7), 0, 0)

    assert first.outcome is None
    assert MOST_READ <= first.next <= MOST_READ + 1_000
    assert written.reader.first(written.topic, place(7), first.next, 0).outcome == ended(7)


def test_an_outcome_that_is_not_committed_is_none(written: Written) -> None:
    relay = Producer({"bootstrap.servers": written.servers, "transactional.id": written.topic})
    relay.init_transactions(30)
    relay.begin_transaction()
    relay.produce(written.topic, ended(7).model_dump_json(by_alias=True).encode(), partition=1)
    relay.flush(30)

    before, ends = written.reader.first(written.topic, place(7), 0, 0), written.reader.ends(written.topic)
    relay.commit_transaction(30)

    assert (before, ends) == (Search(None, 0), {0: 0, 1: 0})
    assert written.reader.first(written.topic, place(7), 0, 10).outcome == ended(7)


def test_the_newest_ends_of_an_id_come_from_all_partitions(written: Written) -> None:
    written.write(ended(5, ended_ms=3), ended(6, "another"), ended(4, partition=0, ended_ms=9), ended(7, ended_ms=4))

    found = [ended(4, partition=0, ended_ms=9), ended(7, ended_ms=4), ended(5, ended_ms=3)]
    assert written.reader.newest(written.topic, SOURCE, b"order-17", None) == Endings(found, 4, is_whole=True)
    assert written.reader.newest(written.topic, SOURCE, b"order-17", 0) == Endings(found[:1], 1, is_whole=True)


def test_a_look_at_the_newest_ends_where_an_end_was_found(written: Written) -> None:
    written.write(ended(5))
    produce(written.servers, written.topic, [Sent(value=b"{}", partition=1)] * 3_000)
    written.write(ended(7))

    assert written.reader.newest(written.topic, SOURCE, b"order-17", 1) == Endings([ended(7)], 2_000, is_whole=False)


def test_the_last_ends_of_an_id_are_kept_where_not_all_have_room(written: Written) -> None:
    written.write(*[ended(offset, ended_ms=offset).model_copy(update={"reason": "x" * 7_000}) for offset in range(200)])

    found = written.reader.newest(written.topic, SOURCE, b"order-17", 1)

    kept = [each.source.offset for each in found.outcomes]
    assert kept == [*range(199, 199 - len(kept), -1)]
    assert len(kept) > 100
    assert not found.is_whole


def test_the_ends_of_an_id_in_another_source_do_not_hide_its_own(written: Written) -> None:
    another = ended(5).model_copy(update={"source": RecordPlace(topic="another", partition=1, offset=5)})
    written.write(ended(7))
    produce(written.servers, written.topic, [Sent(value=b"{}", partition=1)] * 3_000)
    written.write(another)

    assert written.reader.newest(written.topic, SOURCE, b"order-17", 1).outcomes == [ended(7)]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\xff\xfe 7",
        b"[" * 10_000,
        b'{"outcome": "Lost", "endedMs": 7, "source": {"topic": "shop.delayed", "partition": 1, "offset": 7}}',
        b'{"outcome": "Delivered", "source": {"topic": "shop.delayed", "partition": 1, "offset": 7}}',
        ended(7).model_dump_json(by_alias=True).encode() + b" " * LONGEST_BYTES,
    ],
    ids=["null", "empty", "no text", "deep", "another word", "no time", "too long"],
)
def test_a_record_that_no_relay_wrote_is_no_end(written: Written, value: bytes | None) -> None:
    produce(written.servers, written.topic, [Sent(b"order-17", value, partition=1)])

    assert written.reader.first(written.topic, place(7), 0, 0) == Search(None, 1)
    assert written.reader.newest(written.topic, SOURCE, b"order-17", 1).outcomes == []


def test_an_offset_that_retention_has_deleted_is_told(written: Written) -> None:
    written.write(*[ended(offset) for offset in range(10)])
    gone = TopicPartition(written.topic, 1, 6)
    admin = AdminClient({"bootstrap.servers": written.servers})
    admin.delete_records([gone])[gone].result(30)

    assert written.reader.first(written.topic, place(3), 2, 0) == Search(None, 10, expired=4)
    assert written.reader.first(written.topic, place(8), 2, 0) == Search(ended(8), 8, expired=4)
    assert written.reader.first(written.topic, place(8), 6, 0) == Search(ended(8), 8)


def test_an_offset_behind_the_end_is_that_of_a_topic_that_was_made_anew(written: Written) -> None:
    written.write(ended(5), ended(7))

    assert written.reader.first(written.topic, place(7), LAST_OFFSET, 0) == Search(ended(7), 1)
    assert written.reader.first(written.topic, place(9), LAST_OFFSET, 0) == Search(None, 2)


def test_a_topic_that_is_not_there_is_named(written: Written) -> None:
    with pytest.raises(TopicMissingError, match=r"there is no topic missing.*, or the login to it may not see it"):
        written.reader.ends(unique("missing"))


def test_a_partition_that_is_not_there_is_named(written: Written) -> None:
    with pytest.raises(RecordMissingError, match=r"outcomes.* has 2 partitions; 3 is none of them"):
        written.reader.first(written.topic, place(7, partition=3), 0, 0)
    with pytest.raises(RecordMissingError, match=r"outcomes.* has 2 partitions; 3 is none of them"):
        written.reader.newest(written.topic, SOURCE, b"order-17", 3)
