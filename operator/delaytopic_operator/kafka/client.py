"""Edge: one Kafka admin client, whose every question has a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing, contextmanager
from functools import partial
from logging import Logger
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from delaytopic_operator.errors import KafkaUnavailable, OperatorError
from delaytopic_operator.kafka.errors import NOT_LET_IN, no_token, not_let_in, translate
from delaytopic_operator.model.kafka_view import NewRecord
from delaytopic_process.kafka_log import client_logger
from delaytopic_process.kafka_tokens import TokenFailure, token_failure, with_authorities

Name = TypeVar("Name", bound=Hashable)
Observe = Callable[[str, str, float], None]
"""Told of each request: its verb (describe, tell, create, add, set, delete, write), `ok` or the error's reason, and
seconds."""

TIMEOUT_S: Final = 10.0
REPEAT_S: Final = 60.0
"""The time after which the same problem of a cluster is worth another log line."""
SLACK_S: Final = 2.0
"""The time that the client library gets beyond its own timeout, before it is given up."""
SLICE_S: Final = 0.1
"""A refused log-in is known at once, but a request would wait for its whole timeout."""
NEVER_S: Final = 3_600.0
"""The longest time-out that the client library takes."""
KNOWN_S: Final = 2.0
"""A client without a token is given this time to connect, in case it got one meanwhile."""
QUIET_S: Final = 10.0
"""The time for which a cluster that did not answer is left alone, and one whose issuer gave no token: reconciliations
of other clusters need the threads."""


class KafkaClient:
    """An admin client; any thread may use it."""

    def __init__(self, settings: Mapping[str, str], observe: Observe, timeout_s: float = TIMEOUT_S) -> None:
        self.servers = settings["bootstrap.servers"]
        self.timeout_s = timeout_s
        self._observe = observe
        self._refused: KafkaError | None = None
        self._no_token: TokenFailure | None = None
        self._suspects = "bootstrapServers, the network and the brokers"
        if "sasl.oauthbearer.method" in settings:
            # The client tells of an issuer that is overloaded (503 and the like) only after most of a minute.
            self._suspects += ", and the issuer at authentication.oauth.tokenEndpointUrl"
        self._silent_until_s = 0.0
        self._lock = threading.Lock()
        self._for_groups: AdminClient | None = None
        self._producer: Producer | None = None
        self._settings: dict[str, Any] = {
            "client.id": "delaytopic-operator",
            "reconnect.backoff.max.ms": 1_000,
            "socket.connection.setup.timeout.ms": 5_000,
            "allow.auto.create.topics": False,
            "error_cb": self._on_error,
            **with_authorities(settings),
        }
        self.admin = self._new_admin()

    def ask(
        self, what: str, question: Callable[[float], Mapping[Name, Future[Any]]], *, vital: bool = True
    ) -> dict[Name, Any]:
        """The answers to a question, each a value or a `KafkaError`.

        `question` gets the request's timeout. A `vital` one that nobody answers silences the cluster for a while.
        Raises `KafkaUnavailable` and `KafkaNotAuthenticated`.
        """
        with self._observed(what):
            return self._answers(what, self.admin, partial(question, self.timeout_s), vital=vital)

    def ask_coordinator(
        self, what: str, question: Callable[[AdminClient, float], Mapping[Name, Future[Any]]]
    ) -> dict[Name, Any]:
        """Ask the coordinator of a group by a client of its own, as `ask` does; it silences nobody.

        librdkafka 2.16 aborts the process when a coordinator comes back for a question that has timed out meanwhile.
        So these do not time out in the client: it is dropped with those that were not answered.
        """
        with self._observed(what):
            with self._lock:
                # A client that has nothing to do counts as false.
                if self._for_groups is None:
                    self._for_groups = self._new_admin()
                admin = self._for_groups
            try:
                return self._answers(what, admin, partial(question, admin, NEVER_S), vital=False)
            except OperatorError:
                with self._lock:
                    if self._for_groups is admin:
                        self._for_groups = None
                raise

    def ask_for_group(self, what: str, group_id: str, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return what a group has committed, asked by a consumer that never joins it.

        The coordinator may be away while the cluster is well, so that no answer does not silence the cluster.
        Raises `KafkaUnavailable`, `KafkaNotAuthenticated`, `KafkaNotAuthorized`.
        """
        with self.consumer(what, group_id, {"enable.auto.commit": False}) as consumer:
            return consumer.committed(partitions, timeout=self.timeout_s)

    def write(self, record: NewRecord) -> None:
        """Write a record, by a producer that is made when it is needed first.

        Raises `KafkaUnavailable`, `KafkaNotAuthenticated`, `KafkaNotAuthorized`, `TopicRejected`.
        """
        what = f"write to the topic {record.topic}"
        errors: list[KafkaError | None] = []
        with self._observed(what):
            try:
                producer = self._open_producer()
                producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                    on_delivery=lambda error, _: errors.append(error),
                )
                producer.flush(self.timeout_s + SLACK_S)
            except KafkaException as error:
                raise translate(error.args[0], what) from error
            if not errors:
                raise self._silent(what, "no answer in time", vital=False)
            if errors[0] is not None:
                raise translate(errors[0], what)

    def _open_producer(self) -> Producer:
        with self._lock:
            if self._producer is None:
                timeout_ms = round(self.timeout_s * 1_000)
                settings = {**self._settings, "enable.idempotence": True, "message.timeout.ms": timeout_ms}
                self._producer = Producer(settings, logger=self._logger())
            return self._producer

    @contextmanager
    def consumer(self, what: str, group_id: str, settings: Mapping[str, Any]) -> Iterator[Consumer]:
        """Open a consumer of a group for what is done in the block, and translate the errors there.

        Raises `KafkaUnavailable`, `KafkaNotAuthenticated`, `KafkaNotAuthorized`.
        """
        with self._observed(what):
            try:
                consumer = Consumer({**self._settings, **settings, "group.id": group_id}, logger=self._logger())
                with closing(consumer):
                    yield consumer
            except KafkaException as error:
                raise translate(error.args[0], what) from error

    def _logger(self) -> Logger:
        return client_logger("kafka-admin", REPEAT_S, servers=self.servers)

    def _new_admin(self) -> AdminClient:
        try:
            return AdminClient(self._settings, logger=self._logger())
        except KafkaException as error:
            raise not_let_in(error.args[0].str()) from error  # certificates and keys are loaded now

    @contextmanager
    def _observed(self, what: str) -> Iterator[None]:
        """Ask nothing of a cluster that is left alone, and tell how the question went."""
        started_s = time.monotonic()
        result = "ok"
        try:
            self._check_it_speaks()
            yield
        except OperatorError as error:
            result = error.reason
            raise
        finally:
            self._observe(what.split(maxsplit=1)[0], result, time.monotonic() - started_s)

    def _answers(
        self, what: str, admin: AdminClient, question: Callable[[], Mapping[Name, Future[Any]]], *, vital: bool
    ) -> dict[Name, Any]:
        started_s = time.monotonic()
        self._refused = None
        known = self._no_token
        admin.poll(0)
        futures = question()
        give_up_s = started_s + self.timeout_s + SLACK_S
        open_ones = set(futures.values())
        while open_ones:
            open_ones = wait(open_ones, timeout=SLICE_S, return_when=FIRST_COMPLETED).not_done
            admin.poll(0)
            refused, failure = self._refused, self._no_token
            patience_s = KNOWN_S if failure is known else 0.0
            if open_ones and failure is not None and time.monotonic() - started_s > patience_s:
                raise self._without_token(failure)
            if open_ones and failure is None and refused is not None:
                raise not_let_in(refused.str())
            if open_ones and time.monotonic() > give_up_s:
                raise self._silent(what, "no answer in time", vital=vital)
        answers = {name: _outcome(future) for name, future in futures.items()}
        lost = next((answer for answer in answers.values() if _is_silence(answer)), None)
        if lost is not None:
            raise self._silent(what, lost.str(), vital=vital)
        self._no_token = None
        return answers

    def _without_token(self, failure: TokenFailure) -> OperatorError:
        self._be_quiet()
        return no_token(failure)

    def _be_quiet(self) -> None:
        with self._lock:
            self._silent_until_s = time.monotonic() + QUIET_S

    def _silent(self, what: str, text: str, *, vital: bool) -> KafkaUnavailable:
        if vital:
            self._be_quiet()
        return KafkaUnavailable(f"Kafka at {self.servers} did not {what} ({text}); check {self._suspects}")

    def _check_it_speaks(self) -> None:
        with self._lock:
            left_s = self._silent_until_s - time.monotonic()
        if left_s > 0 and self._no_token is not None:
            raise no_token(self._no_token)
        if left_s > 0:
            raise KafkaUnavailable(
                f"Kafka at {self.servers} did not answer a moment ago, and is asked again within {QUIET_S:.0f} s; "
                f"check {self._suspects}"
            )

    def _on_error(self, error: KafkaError) -> None:
        failure = token_failure(error)
        if failure is not None:
            self._no_token = failure
        elif error.code() in NOT_LET_IN:
            self._refused = error


def _outcome(future: Future[Any]) -> Any:
    try:
        return future.result(0)
    except KafkaException as error:
        return error.args[0]


def _is_silence(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.code() in (
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
        KafkaError._DESTROY,
    )
