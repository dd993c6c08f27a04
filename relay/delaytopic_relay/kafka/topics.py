"""Edge: what Kafka says of topics: whether they exist, their partitions and settings."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclOperation,
    AdminClient,
    ConfigResource,
    ConsumerGroupDescription,
    ListOffsetsResultInfo,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)

from delaytopic_process.kafka_log import client_logger
from delaytopic_process.kafka_tokens import TokenFailure, TokenProblem, token_failure
from delaytopic_relay.core.progress import usual_id
from delaytopic_relay.core.recovery import SourceTopic
from delaytopic_relay.errors import ConfigurationError, KafkaUnavailable, TopicForbidden
from delaytopic_relay.kafka.looks import look_at
from delaytopic_relay.kafka.preflight import UNLIMITED_BYTES, TopicFacts
from delaytopic_relay.kafka.settings import Settings
from delaytopic_relay.kafka.watching import AskGroup
from delaytopic_relay.ports import Look

TIMEOUT_S = 10.0
SLICE_S = 1.0
"""A refused log-in is known at once, but `list_topics` would wait for its whole timeout."""
FRESH_S = 5.0
ASK_S = 5.0
"""The time to ask for topics that records name: what is not answered by then limits nothing."""
NEVER_S = 3_600.0
"""The longest time-out that the client takes."""
MANY = 16
"""The number of topics from which on a list of all tells first which of them exist: to ask about a thousand that do not
takes a broker half a second, and the list a few milliseconds."""
MOST_KNOWN = 4_096
"""Topics that records named and that are remembered: more than leave in one step, and a megabyte."""
NOTHING_TO_SEND_TO = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_EXCEPTION,
    }
)
NOT_LET_IN = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError._SSL,
    }
)
FIELDS_OF_TOKENS = {
    TokenProblem.CLIENT: "clientIdFile and kafka.security.oauth.clientSecretFile",
    TokenProblem.SCOPE: "scope",
    TokenProblem.AUTHORITY: "caFile",
    TokenProblem.ENDPOINT: "tokenEndpointUrl",
}


class TopicReader:
    """Asks the cluster about topics, and remembers the answers for some seconds."""

    def __init__(self, connection: Settings, own: Collection[str]) -> None:
        """`own` are the topics without which this relay cannot work; others are named by records.

        Raises `ConfigurationError` for certificates and keys that the client cannot use: it loads them at once.
        """
        self._own = frozenset(own)
        self.connection = connection
        """The settings common to all clients of this relay."""
        self._refused: KafkaError | None = None
        self._no_token: TokenFailure | None = None
        self._by_token = "sasl.oauthbearer.method" in connection
        """The client tells of an issuer that is overloaded (503 and the like) only after most of a minute."""
        self._known: dict[str, tuple[float, TopicFacts | None]] = {}
        self._limits: dict[str, tuple[float, int | None]] = {}
        self._counts: dict[str, int] = {}
        self._rights: dict[str, tuple[float, bool]] = {}
        settings: dict[str, Any] = {**connection, "error_cb": self._on_error, "allow.auto.create.topics": False}
        try:
            self._admin = AdminClient(settings, logger=client_logger("admin"))
        except KafkaException as error:
            raise ConfigurationError(f"kafka.security cannot be used: {error.args[0].str()}") from error

    def __len__(self) -> int:
        """Return how many topics that records named are remembered."""
        return len(self._limits)

    def _on_error(self, error: KafkaError) -> None:
        failure = token_failure(error)
        if failure is not None:
            self._no_token = failure
        elif error.code() in NOT_LET_IN:
            self._refused = error

    def read(self, topic: str) -> TopicFacts | None:
        """The topic's facts, None if it does not exist.

        Raises `KafkaUnavailable` when the cluster does not answer, `ConfigurationError` when it does not let us in.
        """
        known = self._known.get(topic)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        return self.read_anew([topic])[topic]

    def read_anew(self, topics: Sequence[str]) -> dict[str, TopicFacts | None]:
        """Ask for the same of one or more topics, as of now: in three requests, however many these are."""
        found = self._ask(topics)
        fresh_s = time.monotonic() + FRESH_S
        self._known.update((topic, (fresh_s, facts)) for topic, facts in found.items())
        return found

    def limit(self, topic: str) -> int | None:
        """The largest record batch of a topic; None if nothing can be sent there. No answer limits nothing."""
        if topic not in self._own:
            self.learn([topic])
            return self._limits[topic][1]
        try:
            facts = self.read(topic)
        except KafkaUnavailable:
            return UNLIMITED_BYTES
        return facts.largest_batch_bytes if facts is not None else None

    def may_write(self, topic: str) -> bool:
        """Return whether this relay's user may write to an own topic, as of some seconds ago; true without an answer.

        A transaction fails as a whole for one record that may not be written.
        """
        known_until, may = self._rights.get(topic, (0.0, True))
        if known_until < time.monotonic():
            asked = self._admin.describe_topics(
                TopicCollection([topic]), include_authorized_operations=True, request_timeout=ASK_S
            )
            may = _limit_known_so_far(asked[topic]) is not None
            self._rights[topic] = (time.monotonic() + FRESH_S, may)
        return may

    def keeps_until(self, topic: str, timestamp_ms: int | None) -> str | None:
        """Return until when an own topic keeps a record, as `TopicFacts` does; None without an answer."""
        try:
            facts = self.read(topic)
        except KafkaUnavailable:
            return None
        return facts.keeps_until(timestamp_ms) if facts is not None else None

    def partitions(self, topic: str) -> int | None:
        """The number of a topic's partitions; None if nothing can be sent there, or without an answer."""
        if self.limit(topic) is None:
            return None
        if topic not in self._own:
            return self._counts.get(topic)
        known = self._known.get(topic)
        return known[1].partitions if known is not None and known[1] is not None else None

    def learn(self, topics: Collection[str]) -> None:
        """Ask about all of these that records name and that are not known, in two or three requests.

        Whoever writes records chooses how many there are: asked one by one, they would keep the loop from what is due.
        """
        now_s = time.monotonic()
        unknown = [topic for topic in topics if topic not in self._own and self._limits.get(topic, (0.0,))[0] <= now_s]
        if not unknown:
            return
        found, fresh_s = self._limits_of(unknown), time.monotonic() + FRESH_S
        for topic in unknown:
            self._limits.pop(topic, None)
            self._limits[topic] = (fresh_s, found[topic])
        for topic in [*self._limits][: max(0, len(self._limits) - max(MOST_KNOWN, len(unknown)))]:
            del self._limits[topic]
            self._counts.pop(topic, None)

    def ask_ends(
        self, topic: str, partitions: Collection[int], level: IsolationLevel
    ) -> dict[int, Future[ListOffsetsResultInfo]]:
        """Ask for the ends of partitions of a topic, as readers of that level see them, and do not wait."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        places = {TopicPartition(topic, partition): latest for partition in partitions}
        asked = self._admin.list_offsets(places, isolation_level=level, request_timeout=ASK_S)
        return {place.partition: answer for place, answer in asked.items()}

    def ask_topic(self, topic: str) -> Future[TopicDescription]:
        """Ask which topic has this name now, without waiting for the answer."""
        return self._admin.describe_topics(TopicCollection([topic]), request_timeout=ASK_S)[topic]

    def source_topic(self, topic: str) -> SourceTopic:
        """Return which topic has this name. Raises `KafkaUnavailable`."""
        asked = self.ask_topic(topic)
        try:
            cluster_id = self._admin.describe_cluster(request_timeout=ASK_S).result(TIMEOUT_S).cluster_id
            return SourceTopic(topic, cluster_id or "", usual_id(str(asked.result(TIMEOUT_S).topic_id)))
        except (KafkaException, TimeoutError) as error:
            raise KafkaUnavailable(f"the id of the topic {topic} is not known: {error}") from error

    def look_at(self, topics: Collection[str]) -> Look:
        """See `ports.LookAt`."""
        return look_at(self._admin, topics)

    def open_group(self, group_id: str, topic: str) -> AskGroup:
        """Return what asks for a group and the topic that it reads, by a client that ends with it.

        librdkafka 2.16 aborts the process when a coordinator comes back for a question that has timed out meanwhile:
        this one does not time out in the client, and whoever gives it up drops the client.
        """
        settings: dict[str, Any] = {**self.connection, "allow.auto.create.topics": False}
        admin = AdminClient(settings, logger=client_logger("group"))

        def ask() -> tuple[Future[ConsumerGroupDescription], Future[TopicDescription]]:
            group = admin.describe_consumer_groups([group_id], request_timeout=NEVER_S)[group_id]
            return group, self.ask_topic(topic)

        return ask

    def _limits_of(self, topics: Sequence[str]) -> dict[str, int | None]:
        there = self._those_there(topics) if len(topics) >= MANY else topics
        found: dict[str, int | None] = dict.fromkeys(topics)
        if not there:
            return found
        asked = self._admin.describe_topics(
            TopicCollection([*there]), include_authorized_operations=True, request_timeout=ASK_S
        )
        found.update((topic, _limit_known_so_far(asked[topic])) for topic in there)
        self._counts.update(
            (topic, len(asked[topic].result(0).partitions)) for topic in there if _is_known(asked[topic])
        )
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic, limit in found.items() if limit is not None]
        settings = self._admin.describe_configs(resources, request_timeout=ASK_S) if resources else {}
        for resource in resources:
            found[resource.name] = _largest_batch(settings[resource])
        return found

    def _those_there(self, topics: Sequence[str]) -> Sequence[str]:
        """Return those that exist now: an older list may miss a topic that was made just before the record was sent."""
        try:
            listed = self._admin.list_topics(timeout=ASK_S).topics
        except KafkaException:
            return topics
        return [topic for topic in topics if topic in listed]

    def _ask(self, topics: Sequence[str]) -> dict[str, TopicFacts | None]:
        """Ask about the first alone, which tells why Kafka is not reached, and then about all at once."""
        self._metadata(topics[0])
        described = self._admin.describe_topics(TopicCollection([*topics]), request_timeout=TIMEOUT_S)
        resources = {topic: ConfigResource(ResourceType.TOPIC, topic) for topic in topics}
        settings = self._admin.describe_configs([*resources.values()], request_timeout=TIMEOUT_S)
        return {topic: self._facts(topic, described[topic], settings[resources[topic]]) for topic in topics}

    def _facts(self, topic: str, described: Future[TopicDescription], settings: Future[Any]) -> TopicFacts | None:
        try:
            partitions = len(described.result(TIMEOUT_S).partitions)
        except KafkaException as error:
            self._check_it_is_unknown(topic, error.args[0])
            return None
        except TimeoutError as error:
            raise KafkaUnavailable(f"the topic {topic}: no answer within {TIMEOUT_S:.0f} s") from error
        return TopicFacts(topic, partitions, _settings(settings))

    def _metadata(self, topic: str) -> Any:
        give_up_s = time.monotonic() + TIMEOUT_S
        while True:
            self._admin.poll(0)
            try:
                found = self._admin.list_topics(topic, timeout=SLICE_S).topics[topic]
            except KafkaException as error:
                self._admin.poll(0)
                known = self._refused is not None or self._no_token is not None
                if known or time.monotonic() > give_up_s:
                    raise self._unreachable(error.args[0]) from error
            else:
                # While an issuer was away, the broker may have refused a token that was too old.
                self._refused = self._no_token = None
                return found

    def _unreachable(self, error: KafkaError) -> Exception:
        if self._no_token is not None:
            return _without_token(self._no_token)
        if self._refused is not None:
            return ConfigurationError(
                f"Kafka does not let this relay in ({self._refused.str()}); "
                "check kafka.security and the Secret behind it"
            )
        issuer = ", and the issuer at kafka.security.oauth.tokenEndpointUrl" if self._by_token else ""
        return KafkaUnavailable(
            f"Kafka does not answer: {error.str()}; check kafka.bootstrapServers and the network{issuer}"
        )

    def _check_it_is_unknown(self, topic: str, error: KafkaError) -> None:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise TopicForbidden(f"the topic {topic} may not be described by this user; grant it Describe")
        if error.code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
            raise KafkaUnavailable(f"the topic {topic}: {error.str()}")


def _settings(asked: Future[Any]) -> dict[str, str]:
    """Return the settings of a topic; none where the relay may not read them."""
    try:
        entries = asked.result(TIMEOUT_S)
    except (KafkaException, TimeoutError):
        return {}
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def _without_token(failure: TokenFailure) -> Exception:
    """Wait where the issuer may answer in a moment; end where somebody has to change something."""
    field = f"kafka.security.oauth.{FIELDS_OF_TOKENS[failure.problem]}"
    if failure.passes:
        return KafkaUnavailable(
            f"the OAuth issuer gives this relay no token ({failure.reason}); it is asked again until it does, check "
            f"{field} and the network"
        )
    return ConfigurationError(
        f"the OAuth issuer gives this relay no token ({failure.reason}); check {field}: the relay ends, and asks again "
        "when it is started again"
    )


def _limit_known_so_far(asked: Future[Any]) -> int | None:
    """None if nothing can be sent to a topic: a transaction fails as a whole for one record that may not be written."""
    try:
        operations = asked.result(ASK_S).authorized_operations
    except KafkaException as error:
        return None if error.args[0].code() in NOTHING_TO_SEND_TO else UNLIMITED_BYTES
    except TimeoutError:
        return UNLIMITED_BYTES
    return UNLIMITED_BYTES if not operations or AclOperation.WRITE in operations else None


def _is_known(asked: Future[Any]) -> bool:
    return asked.done() and asked.exception(0) is None


def _largest_batch(asked: Future[Any]) -> int:
    try:
        return int(asked.result(ASK_S)["max.message.bytes"].value)
    except (KafkaException, TimeoutError, KeyError):
        return UNLIMITED_BYTES
