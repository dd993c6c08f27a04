"""Edge: questions to a Kafka cluster, and their answers as plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from confluent_kafka import IsolationLevel, KafkaError, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    ConfigResource,
    ConfigSource,
    OffsetSpec,
    ResourceType,
)

from delaytopic_operator.clock import epoch_ms
from delaytopic_operator.kafka.client import KafkaClient
from delaytopic_operator.kafka.ends import SourceEnds
from delaytopic_operator.kafka.errors import UNKNOWN_TOPIC, translate
from delaytopic_operator.model.kafka_view import Committed, KafkaView, PartitionOffsets, TopicFacts

BATCH: Final = 500
"""Topics in one request: some 0.8 s of a broker's and our own work for their settings."""

Ends = Mapping[tuple[str, int], int]


def read_topics(client: KafkaClient, names: Iterable[str]) -> KafkaView:
    """Return what is there now of these topics, without settings; nothing is created by asking.

    Raises errors of the operator's tree.
    """
    parts = [_describe(client, batch) for batch in _batches(dict.fromkeys(names))]
    return KafkaView(
        {name: facts for part in parts for name, facts in part.topics.items()},
        frozenset().union(*(part.missing for part in parts)),
        frozenset().union(*(part.forbidden for part in parts)),
    )


def read_settings(client: KafkaClient, seen: KafkaView, known: Mapping[str, TopicFacts]) -> KafkaView:
    """Return the same topics with their settings, those of `known` ones as they are known.

    Raises errors of the operator's tree.
    """
    there = {
        name: replace(facts, config=known[name].config, own_config=known[name].own_config)
        for name, facts in seen.topics.items()
        if name in known
    }
    for batch in _batches(seen.topics.keys() - known.keys()):
        for name, config in _read_configs(client, batch).items():
            there[name] = _with_settings(seen.topics[name], config)
    return KafkaView(there, seen.missing | (seen.topics.keys() - there.keys()), seen.forbidden)


def read_offsets(client: KafkaClient, topics: Iterable[TopicFacts]) -> dict[str, dict[int, PartitionOffsets]]:
    """First and next offsets of all partitions; a partition without a leader is left out."""
    partitions = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    begins, ends = (_read_ends(client, partitions, spec) for spec in _ends())
    offsets: dict[str, dict[int, PartitionOffsets]] = {}
    for name, number in partitions:
        if (name, number) in begins and (name, number) in ends:
            found = PartitionOffsets(begins[name, number], ends[name, number])
            offsets.setdefault(name, {})[number] = found
    return offsets


def read_sources(client: KafkaClient, topics: Iterable[TopicFacts]) -> dict[str, SourceEnds]:
    """Return where these topics begin and end, and up to where relays can read; raises errors of the operator's
    tree.
    """
    ordered = list(topics)
    sources: dict[str, SourceEnds] = {}
    for first in range(0, len(ordered), BATCH):
        batch = ordered[first : first + BATCH]
        as_of_ms = epoch_ms()
        stable = _read_stable_ends(client, batch)
        # Asked later: what is stable is never behind the end.
        offsets = read_offsets(client, batch)
        sources |= {
            each.name: SourceEnds(offsets.get(each.name, {}), stable.get(each.name, {}), as_of_ms) for each in batch
        }
    return sources


def _read_stable_ends(client: KafkaClient, topics: Iterable[TopicFacts]) -> dict[str, dict[int, int]]:
    partitions = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    _, latest = _ends()
    stable: dict[str, dict[int, int]] = {}
    for (name, number), offset in _read_ends(client, partitions, latest, IsolationLevel.READ_COMMITTED).items():
        stable.setdefault(name, {})[number] = offset
    return stable


def read_offsets_at(client: KafkaClient, topic: TopicFacts, at_ms: int) -> dict[int, int | None]:
    """Return by partition the first offset with this timestamp or a later one that relays can read; None where there is
    no such record.
    """
    partitions = [(topic.name, number) for number in range(topic.partitions)]
    spec = OffsetSpec.for_timestamp(at_ms)
    found = _read_ends(client, partitions, spec, IsolationLevel.READ_COMMITTED)
    return {number: offset if offset >= 0 else None for (_, number), offset in found.items()}


def read_committed(
    client: KafkaClient, group_id: str, topics: Iterable[TopicFacts]
) -> dict[tuple[str, int], Committed]:
    """Return what a consumer group has committed of these topics; nothing for a group that does not exist.

    Waits for a transaction that is in doubt.
    """
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]
    if not partitions:
        return {}
    what = f"tell the offsets of the group {group_id}"
    answers = client.ask_for_group(what, group_id, partitions)
    for answer in answers:
        if answer.error is not None:
            raise translate(answer.error, what)
    return {
        (answer.topic, answer.partition): Committed(answer.offset, answer.metadata or "")
        for answer in answers
        if answer.offset >= 0
    }


def read_offsets_retention(client: KafkaClient) -> int | None:
    """Return the time in ms for which some broker keeps what a group without members has committed; None: it may not be
    read.
    """
    cluster = _read_cluster(client)
    if cluster is None or not cluster.nodes:
        return None
    broker = ConfigResource(ResourceType.BROKER, str(cluster.nodes[0].id))

    def question(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.describe_configs([broker], request_timeout=timeout_s)

    answer = client.ask("describe the settings of a broker", question, vital=False)[broker]
    minutes = None if isinstance(answer, KafkaError) else answer.get("offsets.retention.minutes")
    return int(minutes.value) * 60_000 if minutes is not None and minutes.value is not None else None


def read_cluster_id(client: KafkaClient) -> str | None:
    """Return what the cluster calls itself, the same whatever address it is reached by; None: it does not say."""
    cluster = _read_cluster(client)
    return cluster.cluster_id or None if cluster is not None else None


def with_committed(
    offsets: Mapping[str, Mapping[int, PartitionOffsets]], committed: Mapping[tuple[str, int], Committed]
) -> dict[str, dict[int, PartitionOffsets]]:
    """Return the same topics with what a group has committed."""
    return {
        topic: {
            number: replace(found, committed=committed[topic, number].offset) if (topic, number) in committed else found
            for number, found in partitions.items()
        }
        for topic, partitions in offsets.items()
    }


def _read_cluster(client: KafkaClient) -> Any:
    answer = client.ask(
        "describe the cluster",
        lambda timeout_s: {0: client.admin.describe_cluster(request_timeout=timeout_s)},
        vital=False,
    )[0]
    return None if isinstance(answer, KafkaError) else answer


def _batches(names: Iterable[str]) -> list[list[str]]:
    ordered = list(names)
    return [ordered[first : first + BATCH] for first in range(0, len(ordered), BATCH)]


def _describe(client: KafkaClient, names: list[str]) -> KafkaView:
    described = client.ask(
        "describe topics",
        lambda timeout_s: client.admin.describe_topics(TopicCollection(names), request_timeout=timeout_s),
    )
    there = {name: answer for name, answer in described.items() if not isinstance(answer, KafkaError)}
    errors = {name: answer for name, answer in described.items() if isinstance(answer, KafkaError)}
    missing = {name for name, error in errors.items() if error.code() in UNKNOWN_TOPIC}
    forbidden = {name for name, error in errors.items() if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED}
    for name, error in errors.items():
        if name not in missing | forbidden:
            raise translate(error, f"describe the topic {name}")
    topics = {name: _facts(description) for name, description in there.items()}
    return KafkaView(topics, frozenset(missing), frozenset(forbidden))


def _read_configs(client: KafkaClient, names: list[str]) -> dict[str, dict[str, Any] | None]:
    """Settings by topic: None where they may not be read; left out for a topic that is gone meanwhile."""
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}

    def question(timeout_s: float) -> Mapping[Any, Future[Any]]:
        return client.admin.describe_configs(list(resources.values()), request_timeout=timeout_s)

    answers = client.ask("describe the settings of topics", question)
    configs: dict[str, dict[str, Any] | None] = {}
    for name, resource in resources.items():
        answer = answers[resource]
        if not isinstance(answer, KafkaError):
            configs[name] = answer
        elif answer.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            configs[name] = None
        elif answer.code() not in UNKNOWN_TOPIC:
            raise translate(answer, f"describe the settings of the topic {name}")
    return configs


def _facts(description: Any) -> TopicFacts:
    return TopicFacts(
        description.name,
        str(description.topic_id),
        len(description.partitions),
        min((len(partition.replicas) for partition in description.partitions), default=0),
        config=None,
    )


def _with_settings(facts: TopicFacts, config: dict[str, Any] | None) -> TopicFacts:
    own = frozenset(name for name, entry in (config or {}).items() if _is_own(entry))
    values = None
    if config is not None:
        values = {name: entry.value for name, entry in config.items() if entry.value is not None}
    return replace(facts, config=values, own_config=own)


def _ends() -> tuple[OffsetSpec, OffsetSpec]:
    return OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]


def _is_own(entry: Any) -> bool:
    return bool(entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value)


def _read_ends(
    client: KafkaClient,
    partitions: list[tuple[str, int]],
    spec: Any,
    level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Ends:
    if not partitions:
        return {}
    request = {TopicPartition(name, number): spec for name, number in partitions}
    question: Callable[[float], Mapping[Any, Future[Any]]] = lambda timeout_s: client.admin.list_offsets(  # noqa: E731
        request, isolation_level=level, request_timeout=timeout_s
    )
    answers = client.ask("tell the offsets of topics", question, vital=False)
    ends = {}
    for partition, answer in answers.items():
        if not isinstance(answer, KafkaError):
            ends[partition.topic, partition.partition] = answer.offset
        elif answer.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise translate(answer, f"read the offsets of the topic {partition.topic}")
    return ends
