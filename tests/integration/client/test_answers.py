"""Answers to cancels on a real Kafka, where the test writes the outcomes that relays write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.records import Sent, produce

from delaytopic.client import (
    AnswerTimeoutError,
    Cancelled,
    DelayedTopic,
    NotPending,
    Outcome,
    Outcomes,
    OutcomesUnreadableError,
    Place,
    TooLate,
    partition_of,
)
from delaytopic_api.relay import Ending
from delaytopic_api.relay import Outcome as OutcomeDocument
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration

PARTITIONS = 3
ID = "order-17"


@dataclass
class World:
    """A source topic, its topic of outcomes, and what stands for a relay."""

    settings: dict[str, str]
    source: str
    topic: str
    producer: Producer
    delayed: DelayedTopic
    outcomes: Outcomes

    @property
    def partition(self) -> int:
        return partition_of(ID.encode(), PARTITIONS)

    def place(self, offset: int) -> Place:
        return Place(self.source, self.partition, offset)

    def write(self, ending: Ending, offset: int, by: int | None = None, name: str = ID) -> Outcome:
        """Write an outcome as a relay does; return what a reader makes of it."""
        places = {
            "source": self.place(offset)._asdict(),
            "endedBy": self.place(by)._asdict() if by is not None else None,
        }
        document = OutcomeDocument.model_validate({"outcome": ending, "id": name, "endedMs": 17, **places})
        value = document.model_dump_json().encode()
        produce(
            self.settings["bootstrap.servers"],
            self.topic,
            [Sent(key=name.encode(), value=value, partition=self.partition)],
        )
        outcome = Outcome.parse(value)
        assert outcome is not None
        return outcome

    def sent(self) -> int:
        """Wait for the last record that was sent; return its offset."""
        self.producer.flush(30)
        records = [each for each in read_topic(self.settings, self.source) if each.at.partition == self.partition]
        return records[-1].at.offset


@pytest.fixture
def make_world(kafka: KafkaAddress) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def make(**options: Any) -> World:
        settings = {"bootstrap.servers": kafka.bootstrap_servers}
        source, topic = unique("source"), unique("outcomes")
        create_topics(kafka.bootstrap_servers, [TopicPlan(source, PARTITIONS), TopicPlan(topic, PARTITIONS)])
        producer, outcomes = Producer(settings), Outcomes(settings, topic, **options)
        made.append(
            World(settings, source, topic, producer, DelayedTopic(producer, source, outcomes=outcomes), outcomes)
        )
        return made[-1]

    yield make
    for world in made:
        world.outcomes.close()


def test_a_cancel_that_wins_is_told_and_needs_no_poll_of_its_caller(make_world: Callable[..., World]) -> None:
    world = make_world()
    answer = world.delayed.cancel(ID)
    outcome = world.write(Ending.CANCELLED, 0, by=0)

    assert answer.result(30) == Cancelled(outcome)


def test_a_coroutine_awaits_the_same_answer(make_world: Callable[..., World]) -> None:
    world = make_world()

    async def cancelled() -> tuple[object, Outcome]:
        answer = world.delayed.cancel(ID)
        outcome = await asyncio.to_thread(world.write, Ending.CANCELLED, 0, by=0)
        return await answer, outcome

    answer, outcome = asyncio.run(cancelled())

    assert answer == Cancelled(outcome)


def test_a_cancel_after_a_delivery_that_nobody_watched_was_too_late(make_world: Callable[..., World]) -> None:
    world = make_world()
    scheduled = world.delayed.schedule("pay", id=ID)
    assert world.sent() == 0
    delivered = world.write(Ending.DELIVERED, 0)
    answer = scheduled.cancel(timeout=30)
    world.write(Ending.NOT_PENDING, 1)

    assert (scheduled.place, answer.result(30)) == (world.place(0), TooLate(delivered))


def test_a_cancel_of_a_handle_whose_record_was_replaced_was_too_late(make_world: Callable[..., World]) -> None:
    world = make_world()
    scheduled = world.delayed.schedule("pay", id=ID)
    world.delayed.replace("pay now", id=ID)
    assert world.sent() == 1
    replaced = world.write(Ending.REPLACED, 0, by=1)
    answer = scheduled.cancel(timeout=30)
    cancelled = world.write(Ending.CANCELLED, 1, by=2)

    assert answer.result(30) == TooLate(replaced, cancelled)


def test_a_cancel_of_what_never_was_is_not_pending(make_world: Callable[..., World]) -> None:
    world = make_world()
    world.write(Ending.DELIVERED, 100, name="another")
    answer = world.delayed.cancel(ID, timeout=30)
    outcome = world.write(Ending.NOT_PENDING, 0)

    assert answer.result(30) == NotPending(outcome, None, whole=True)


def test_a_look_back_that_ends_before_the_first_outcome_says_so(make_world: Callable[..., World]) -> None:
    world = make_world(look_back=1)
    world.write(Ending.DELIVERED, 100)
    world.write(Ending.DELIVERED, 101, name="another")
    answer = world.delayed.cancel(ID, timeout=30)
    outcome = world.write(Ending.NOT_PENDING, 0)

    assert answer.result(30) == NotPending(outcome, None, whole=False)


def test_two_cancels_of_one_id_have_an_answer_each(make_world: Callable[..., World]) -> None:
    world = make_world()
    first, second = world.delayed.cancel(ID, timeout=30), world.delayed.cancel(ID, timeout=30)
    won, lost = world.write(Ending.CANCELLED, 0, by=0), world.write(Ending.NOT_PENDING, 1)

    assert (first.result(30), second.result(30)) == (Cancelled(won), NotPending(lost, won))


def test_an_outcome_of_an_aborted_transaction_answers_nothing(make_world: Callable[..., World]) -> None:
    world = make_world()
    relay = Producer({**world.settings, "transactional.id": world.topic})
    relay.init_transactions(30)
    answer = world.delayed.cancel(ID, timeout=30)
    assert world.sent() == 0
    for ending, ends in ((Ending.CANCELLED, relay.abort_transaction), (Ending.NOT_PENDING, relay.commit_transaction)):
        relay.begin_transaction()
        places = {"source": world.place(0)._asdict(), "endedBy": world.place(0)._asdict()}
        value = json.dumps({"outcome": ending, "id": ID, "endedMs": 17, **places}).encode()
        relay.produce(world.topic, value, ID.encode(), partition=world.partition)
        relay.flush(30)
        ends(30)

    assert isinstance(answer.result(30), NotPending)


def test_a_cancel_that_no_relay_reads_ends_at_its_timeout(make_world: Callable[..., World]) -> None:
    answer = make_world().delayed.cancel(ID, timeout=0.5)

    with pytest.raises(AnswerTimeoutError, match=r"the cancel is at source.*, and no relay has answered it in 0.5 s"):
        answer.result(30)


def test_a_reader_goes_on_after_it_had_nothing_to_wait_for(make_world: Callable[..., World]) -> None:
    world = make_world()
    first = world.delayed.cancel(ID, timeout=30)
    world.write(Ending.CANCELLED, 0, by=0)
    first.result(30)
    second = world.delayed.cancel(ID, timeout=30)
    outcome = world.write(Ending.CANCELLED, 5, by=1)

    assert second.result(30) == Cancelled(outcome)


def test_a_thousand_cancels_at_once_have_their_answers(make_world: Callable[..., World]) -> None:
    world = make_world()
    names = [name for name in map(str, range(4_000)) if partition_of(name.encode(), PARTITIONS) == 0][:1_000]
    answers = [world.delayed.cancel(name, timeout=60) for name in names]
    records = []
    for offset, name in enumerate(names):
        source = Place(world.source, 0, offset)
        document = {"outcome": "NotPending", "id": name, "endedMs": 17, "source": source._asdict()}
        records.append(Sent(key=name.encode(), value=json.dumps(document).encode(), partition=0))
    produce(world.settings["bootstrap.servers"], world.topic, records)

    found = [answer.result(60) for answer in answers]

    assert [each.outcome.id for each in found if each.outcome is not None] == [name.encode() for name in names]


def test_a_topic_of_outcomes_that_is_not_there_is_a_clear_error_and_nothing_is_sent(
    make_world: Callable[..., World],
) -> None:
    world = make_world()
    delayed = DelayedTopic(world.producer, world.source, outcomes=Outcomes(world.settings, unique("missing")))

    with pytest.raises(OutcomesUnreadableError, match=r"the outcomes in missing.* cannot be read"):
        delayed.cancel(ID)
    world.producer.flush(30)
    assert read_topic(world.settings, world.source) == []


def test_outcomes_that_were_deleted_do_not_hide_the_verdict(make_world: Callable[..., World]) -> None:
    world = make_world()
    for offset in range(100, 103):
        world.write(Ending.DELIVERED, offset)
    admin = AdminClient({"bootstrap.servers": world.settings["bootstrap.servers"]})
    for future in admin.delete_records([TopicPartition(world.topic, world.partition, 3)]).values():
        future.result(30)
    answer = world.delayed.cancel(ID, timeout=30)
    outcome = world.write(Ending.NOT_PENDING, 0)

    assert answer.result(30) == NotPending(outcome, None, whole=True)
