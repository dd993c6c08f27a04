"""Edge: a reader of outcomes, in a thread of its own, that answers cancels. Its client is imported when it is used."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, Final

from delaytopic.outcomes import Answer, Cancelled, CancelQuestion, CancelRefusedError, Outcome, Place, TooLate
from delaytopic.settling import settled

METADATA_TIMEOUT_S: Final = 10.0
LOOK_BACK: Final = 100_000
"""Outcomes of one partition."""
_SLICE_S: Final = 0.05
_AT_ONCE: Final = 500


class AnswerTimeoutError(TimeoutError):
    """No relay has answered a cancel in time; the text says how far it came. The cancel counts all the same."""


class OutcomesUnreadableError(RuntimeError):
    """The outcomes cannot be read: there are none, or Kafka refuses them. The cancel counts all the same."""


class AnswerFuture(Future[Answer]):
    """The answer to a cancel, for threads (`result()`) and for coroutines (`await`). It ends by itself, at its timeout.

    Raises AnswerTimeoutError, OutcomesUnreadableError, CancelRefusedError, and what Kafka said of a cancel that it
    refused.
    """

    def __await__(self) -> Generator[Any, None, Answer]:
        """Wait without holding the event loop up."""
        # For callers in coroutines alone, who have it.
        import asyncio  # noqa: PLC0415

        return asyncio.wrap_future(self).__await__()


def best_of(futures: Sequence[AnswerFuture]) -> AnswerFuture:
    """Return the answer to a cancel that went to several partitions: that it won in one of them, or else that it came
    too late in one. If one of them has none, and no other has won, its error is raised.
    """
    best = AnswerFuture()

    def look(_: Future[Answer]) -> None:
        done = [each for each in futures if each.done()]
        answers = [each.result() for each in done if each.exception() is None]
        won = next((answer for answer in answers if isinstance(answer, Cancelled)), None)
        if won is None and len(done) < len(futures):
            return
        error = next((each.exception() for each in done if each.exception() is not None), None)
        with suppress(InvalidStateError):
            if won is not None:
                best.set_result(won)
            elif error is not None:
                best.set_exception(error)
            else:
                best.set_result(next((answer for answer in answers if isinstance(answer, TooLate)), answers[0]))

    for each in futures:
        each.add_done_callback(look)
    return best


class _Asked:
    """A cancel on its way: from the question to the future that has its answer."""

    def __init__(
        self, name: bytes, partition: int, first: int, end: int, timeout_s: float, serve: Callable[[float], object]
    ) -> None:
        self.name = name
        self.partition = partition
        self.first = first
        """The first outcome that there is in the partition."""
        self.question = CancelQuestion(end)
        self.future = AnswerFuture()
        self.timeout_s = timeout_s
        self.until_s = time.monotonic() + timeout_s
        self.serve = serve
        self.looks_back_from: int | None = None
        self._looked_back = False

    def note(self, offset: int, outcome: Outcome) -> None:
        """Take an outcome of the id; once the one that names the cancel comes again, all before it was read."""
        self.question.take(offset, outcome)
        if self.looks_back_from is not None and offset == self.question.verdict_at:
            self._looked_back = True

    def settle(self) -> None:
        """Give the future its answer, if it is known."""
        whole = self.looks_back_from is None or self.looks_back_from <= self.first
        try:
            answer = self.question.answer(looked_back=self._looked_back, whole=whole)
        except CancelRefusedError as error:
            self.fail(error)
            return
        if answer is not None:
            with suppress(InvalidStateError):
                self.future.set_result(answer)

    def fail(self, error: Exception) -> None:
        """Give the future an error, unless its caller has given it up."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)


class Outcomes:
    """The topic of outcomes of DelayTopics, read without a consumer group. May be shared by threads and topics.

    Nothing is read, and no thread runs, while no answer is awaited.
    """

    def __init__(self, settings: Mapping[str, Any], topic: str, *, look_back: int = LOOK_BACK) -> None:
        """`settings` are those of confluent-kafka's client, with `bootstrap.servers`. Connects with the first cancel.

        The login needs READ on the topic. `look_back` is the number of outcomes of a partition that are searched, at
        most, for the end of a schedule that was no longer pending.
        """
        self.topic = topic
        self._settings = settings
        self._look_back = look_back
        self._lock = threading.Lock()
        self._clients: tuple[Any, Any] | None = None
        self._asked: list[_Asked] = []
        self._positions: dict[int, int] = {}
        """The next offset of each partition that is read."""
        self._moved = False
        """True when the reader has to go to the positions anew."""
        self._thread: threading.Thread | None = None
        self._last_error = ""

    def close(self) -> None:
        """Give up what is awaited, and leave the connection."""
        with self._lock:
            asked, self._asked, thread = self._asked, [], self._thread
        for each in asked:
            each.fail(OutcomesUnreadableError(f"the reader of {self.topic} was closed"))
        if thread is not None:
            thread.join()
        with self._lock:
            clients, self._clients = self._clients or (), None
        for each in clients:
            each.close()

    def ask(self, name: bytes, partition: int, timeout_s: float, serve: Callable[[float], object]) -> _Asked:
        """Note where the outcomes end, before a cancel is sent, and wait for its answer from there on.

        `serve` is called while the place of the cancel is not known: it serves the producer's callbacks. Raises
        OutcomesUnreadableError.
        """
        first, end = self._watermarks(partition)
        asked = _Asked(name, partition, first, end, timeout_s, serve)
        with self._lock:
            self._asked.append(asked)
            self._go_back(partition, end)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="delaytopic-outcomes", daemon=True)
                self._thread.start()
        return asked

    def sent(self, asked: _Asked, error: Any, message: Any, own: Place | None) -> None:
        """Note where the cancel lies, or that Kafka refused it; `own` is the schedule that is meant, if one is."""
        if error is None:
            asked.question.locate(Place(message.topic(), message.partition(), message.offset()), own)
            return
        from confluent_kafka import KafkaException  # noqa: PLC0415

        self.forget(asked)
        asked.fail(KafkaException(error))

    def forget(self, asked: _Asked) -> None:
        """Ask no more."""
        with self._lock:
            if asked in self._asked:
                self._asked.remove(asked)

    def _watermarks(self, partition: int) -> tuple[int, int]:
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415

        _, asker = self._connected()
        ask = partial(asker.get_watermark_offsets, TopicPartition(self.topic, partition), METADATA_TIMEOUT_S)
        try:
            first, end = settled(ask, METADATA_TIMEOUT_S)
        except KafkaException as error:
            raise self._unreadable(error.args[0].str()) from error
        return first, end

    def _connected(self) -> tuple[Any, Any]:
        """Return the consumer that reads, and one that asks: a question behind a fetch would wait as long as that."""
        from confluent_kafka import Consumer  # noqa: PLC0415

        settings = {
            **self._settings,
            # The client wants a name; with partitions assigned by hand no group comes of it.
            "group.id": f"delaytopic-outcomes-{uuid.uuid4()}",
            # An outcome that is not committed may never have been.
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 8_192,
        }
        with self._lock:
            if self._clients is None:
                self._clients = Consumer(settings), Consumer(settings)
            return self._clients

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as error:
            # Nobody waits for a thread that is gone.
            with self._lock:
                asked, self._asked, self._thread = self._asked, [], None
            for each in asked:
                each.fail(self._unreadable(str(error)))
            raise

    def _turn(self) -> bool:
        """Read once; tell whether there is more to wait for."""
        reader, _ = self._connected()
        with self._lock:
            if not self._asked:
                self._positions.clear()
                reader.unassign()
                self._thread = None
                return False
            positions = dict(self._positions) if self._moved else None
            self._moved = False
            unsent = {each.serve for each in self._asked if each.question.place is None}
        if positions is not None:
            self._assign(reader, positions)
        for serve in unsent:
            serve(0)
        for message in reader.consume(_AT_ONCE, _SLICE_S):
            self._take(message)
        self._settle()
        return True

    def _go_back(self, partition: int, offset: int) -> None:
        """Read a partition from an offset on, or from before it, if it is read there already."""
        position = self._positions.get(partition)
        if position is None or offset < position:
            self._positions[partition] = offset
            self._moved = True

    def _assign(self, reader: Any, positions: Mapping[int, int]) -> None:
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        reader.assign([TopicPartition(self.topic, each, offset) for each, offset in positions.items()])

    def _take(self, message: Any) -> None:
        error = message.error()
        if error is not None:
            self._note(error)
            return
        partition, offset = message.partition(), message.offset()
        with self._lock:
            if not self._moved:
                # Else it was read before the reader is told to go back.
                self._positions[partition] = offset + 1
            meant = [each for each in self._asked if each.partition == partition and each.name == message.key()]
        outcome = Outcome.parse(message.value()) if meant else None
        if outcome is not None:
            for each in meant:
                each.note(offset, outcome)

    def _note(self, error: Any) -> None:
        from confluent_kafka import KafkaError  # noqa: PLC0415

        # The group is a name, and nobody asks its coordinator for anything.
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return
        self._last_error = error.str()
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.UNKNOWN_TOPIC_OR_PART):
            with self._lock:
                asked, self._asked = self._asked, []
            for each in asked:
                each.fail(self._unreadable(error.str()))

    def _settle(self) -> None:
        now_s = time.monotonic()
        with self._lock:
            asked = [*self._asked]
        # Without the lock: a callback of a future may ask again.
        for each in asked:
            each.settle()
            if now_s >= each.until_s and not each.future.done():
                each.fail(self._late(each))
        with self._lock:
            self._asked = [each for each in self._asked if not each.future.done()]
            for each in self._asked:
                if each.question.verdict_at is not None and each.looks_back_from is None:
                    each.looks_back_from = max(each.first, each.question.start - self._look_back)
                    self._go_back(each.partition, each.looks_back_from)

    def _unreadable(self, why: str) -> OutcomesUnreadableError:
        return OutcomesUnreadableError(
            f"the outcomes in {self.topic} cannot be read: {why}. It has to be the topic that spec.outcomes of the "
            "DelayTopic names, and the login needs READ on it"
        )

    def _late(self, asked: _Asked) -> AnswerTimeoutError:
        error = f" The client's last error: {self._last_error}." if self._last_error else ""
        if asked.question.place is None:
            return AnswerTimeoutError(
                f"Kafka has not acknowledged the cancel in {asked.timeout_s:g} s; it may arrive still. Wait for "
                f"flush() of the producer, and cancel again: a second cancel harms nothing.{error}"
            )
        if asked.question.verdict_at is not None:
            return AnswerTimeoutError(
                f"the cancel at {asked.question.place} met nothing, and the search for an earlier end of its id is not "
                f"over in {asked.timeout_s:g} s. Cancel again with a longer timeout, or look back less.{error}"
            )
        return AnswerTimeoutError(
            f"the cancel is at {asked.question.place}, and no relay has answered it in {asked.timeout_s:g} s: relays "
            f"are down or behind with reading, or {self.topic} is not the topic of spec.outcomes, or its `only` "
            "leaves this ending out. The cancel counts when it is read: wait longer, or cancel again to ask again"
            f".{error}"
        )
