"""Edge: whether a log was truncated below a place, by the leader epoch of the last record in front of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from delaytopic_process.kafka_log import client_logger
from delaytopic_relay.core.membership import Answer
from delaytopic_relay.errors import KafkaUnavailable
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.ports import Place

ANSWER_S = 10.0
ONLY_READS: Settings = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 65_536,
}
"""The settings of a consumer that never joins the group, and reads a record of each partition."""


class _First(NamedTuple):
    """The first thing that a reader finds: a record, the end, or that the place where it was to begin is gone."""

    offset: int | None
    """None if that is gone."""
    epoch: int = -1
    """The leader epoch of a record."""


GONE = _First(None)


class Truncation:
    """Reads a record of each partition in question, by consumers that begin there and never join the group."""

    def __init__(self, connection: Settings, topic: str, group: str, low_of: Callable[[int], int]) -> None:
        """`low_of` asks where a partition's records begin; it raises `KafkaUnavailable`."""
        self._connection = connection
        self._topic = topic
        self._group = group
        self._low_of = low_of

    def cut_below(self, places: Mapping[int, Place]) -> dict[int, bool]:
        """Read the last record below each place, by its epoch, and what follows it where anything may.

        Where the record is gone, a client that knows nothing of the partition yet tells: it validates where it begins
        (KIP-320). One that knows the leaders does not.
        """
        begins = {
            each: TopicPartition(self._topic, each, max(0, place.behind - 1))
            for each, place in places.items()
            if place.epoch >= 0
        }
        last = self._first_of(begins, "read_uncommitted")
        answered = {each: place for each, place in places.items() if each in last or each not in begins}
        same = {each: _is_last(last.get(each, GONE), place) for each, place in answered.items()}
        begins = {
            each: self._behind_last(each, place, gone=same[each] is None)
            for each, place in answered.items()
            if same[each] is None or (same[each] and place.behind < place.position)
        }
        found = self._first_of(begins, "read_committed")
        cut = {each: first.offset is None or first.offset < places[each].position for each, first in found.items()}
        return cut | {each: not same[each] for each in same.keys() - begins.keys()}

    def _behind_last(self, partition: int, place: Place, *, gone: bool) -> TopicPartition:
        """Return where to read what follows the last record below a place: what the source still has of it."""
        low = self._low_of(partition) if gone else 0
        if low >= place.behind or place.epoch < 0:
            return TopicPartition(self._topic, partition, max(low, place.behind))
        return TopicPartition(self._topic, partition, place.behind, leader_epoch=place.epoch)

    def _first_of(self, begins: Mapping[int, TopicPartition], isolation_level: str) -> dict[int, _First]:
        """Return what is found from each place on; without an answer it is left out."""
        found: dict[int, _First] = {}
        if not begins:
            return found
        settings: dict[str, Any] = {**self._connection, **ONLY_READS, "group.id": self._group}
        consumer = Consumer({**settings, "isolation.level": isolation_level}, logger=client_logger("source"))
        give_up_s = time.monotonic() + ANSWER_S
        try:
            consumer.assign([*begins.values()])
            while len(found) < len(begins) and time.monotonic() < give_up_s:
                message = consumer.poll(0.1)
                first = _first(message) if message is not None else None
                if message is not None and first is not None and message.partition() in begins:
                    found.setdefault(message.partition() or 0, first)
        except KafkaException as error:
            raise KafkaUnavailable(f"leader epochs of {self._topic}: {error.args[0].str()}") from error
        finally:
            consumer.close()
        return found


def heard_in(error: KafkaError) -> Answer:
    """Return what an error of the consumer says of it."""
    # The client tells of a member that the group does not know by `on_lost`, and joins again by itself.
    code = error.code()
    if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION):
        return Answer.OFFSET_GONE
    return Answer.FENCED if error.fatal() or code == KafkaError._FATAL else Answer.PASSING


def _first(message: Message) -> _First | None:
    """Return what a message tells of the log; None for a passing error."""
    error, offset = message.error(), message.offset()
    if error is None:
        return _First(offset, epoch_of(message))
    if error.code() == KafkaError._PARTITION_EOF:
        return _First(offset)
    return GONE if heard_in(error) is Answer.OFFSET_GONE else None


def _is_last(first: _First, place: Place) -> bool | None:
    """Tell whether what was found where a place's last record was is that record; None if there is no other, either."""
    return first.epoch == place.epoch if first.offset == place.behind - 1 else None


def epoch_of(message: Message) -> int:
    """Return the leader epoch of a record; -1 if it is not known."""
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch
