"""The settings that are in force for each DelayTopic of a YAML file, and the topics and relay documents that follow."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from delaytopic_api import (
    DelayClass,
    DelayTopic,
    RecurringRecord,
    RelayConfig,
    Settings,
    class_for,
    load_documents,
    relay_config,
    resolve,
)
from delaytopic_api.documents import TopicSettings
from delaytopic_api.loading import AnyDocument
from delaytopic_api.recurrence import Missed
from delaytopic_api.relay import HttpServer, KafkaClient, KafkaSecurity, RedisClient, RelayLimits
from delaytopic_api.values import MOST_MESSAGE_BYTES, BackendType, Ids, Management, bucket_topics
from delaytopic_gateway.client.topics import TopicPlan
from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_process.errors import InputError
from delaytopic_process.kafka_tokens import with_authorities

BROKERS_CLOCK = {"message.timestamp.type": "LogAppendTime"}
DEFAULT_PARTITIONS = 4
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588
DEAD_LETTER_HEADROOM_BYTES = 64 * 1024
BROKERS_OWN_REPLICATION = -1
_SECURITY = {
    "security.protocol": "protocol",
    "ssl.ca.location": "ca_file",
    "ssl.certificate.location": "certificate_file",
    "ssl.key.location": "key_file",
    "sasl.mechanism": "mechanism",
    "sasl.username": "username",
    "sasl.password": "password_file",
    "sasl.oauthbearer.method": "oauth.method",
    "sasl.oauthbearer.token.endpoint.url": "oauth.token_endpoint_url",
    "sasl.oauthbearer.client.id": "oauth.client_id_file",
    "sasl.oauthbearer.client.secret": "oauth.client_secret_file",
    "sasl.oauthbearer.scope": "oauth.scope",
    "sasl.oauthbearer.extensions": "oauth.extensions",
    "https.ca.location": "oauth.ca_file",
}
"""The settings of Kafka clients that relays know, and the fields of their configuration."""
_SECRETS = {
    "sasl.password": "kafka-password",
    "sasl.oauthbearer.client.id": "kafka-client-id",
    "sasl.oauthbearer.client.secret": "kafka-client-secret",
}
"""Settings of which relays read the values in files, and the files' names."""
_METHOD = "sasl.oauthbearer.method"


def read_settings(file: Path) -> list[Settings]:
    """Return the settings in force for each DelayTopic of the file, by the DelayClasses of the same file.

    Raises InputError when the file can't be read or has no DelayTopic, and ApiError, with the path of each wrong field.
    """
    documents = _documents(file)
    classes = [document for document in documents if isinstance(document, DelayClass)]
    topics = [document for document in documents if isinstance(document, DelayTopic)]
    if not topics:
        raise InputError(f"{file} holds no DelayTopic")
    return [resolve(topic, class_for(topic, classes)) for topic in topics]


def recurring_records(file: Path, delay_topic: str) -> dict[str, RecurringRecord]:
    """Return the RecurringRecords of the file that go through a DelayTopic, `namespace/name`, by their names.

    Raises InputError and ApiError as `read_settings` does.
    """
    records = (each for each in _documents(file) if isinstance(each, RecurringRecord))
    return {each.metadata.name: each for each in records if _through(each) == delay_topic}


def _through(record: RecurringRecord) -> str:
    return f"{record.metadata.namespace}/{record.spec.delay_topic}"


def not_written(file: Path, all_settings: Sequence[Settings]) -> Iterator[str]:
    """Yield lines on the RecurringRecords of the file: no operator writes them here, but a command can.

    Raises InputError and ApiError as `read_settings` does.
    """
    sources = {f"{settings.namespace}/{settings.name}": settings.source.topic for settings in all_settings}
    for record in _documents(file):
        if not isinstance(record, RecurringRecord):
            continue
        named = _through(record)
        if named not in sources:
            yield f"RecurringRecord {record.full_name} is not written: {file} holds no DelayTopic {named}"
            continue
        yield f"RecurringRecord {record.full_name} is not written, as no operator runs here; a command like it:"
        yield f"  delaytopic send {shlex.join([sources[named], *_like(record)])}"


def _like(record: RecurringRecord) -> Iterator[str]:
    """Yield the options of a command that sends such a record."""
    spec = record.spec
    options = {
        "--id": record.metadata.name,
        "--cron": spec.cron,
        "--every": spec.every,
        "--tz": spec.time_zone,
        "--from": spec.start,
        "--until": spec.until,
        "--jitter": spec.jitter,
        "--missed": str(spec.missed) if spec.missed is not Missed.LATEST else None,
        "--catch-up": spec.catch_up,
        "--key": spec.key,
        "--value": spec.value or "",
    }
    for name, value in options.items():
        yield from (name, str(value)) if value is not None else ()
    for header, text in spec.headers.items():
        yield from ("--header", f"{header}={text}")


def _documents(file: Path) -> list[AnyDocument]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    return load_documents(text, str(file))


def check_addresses(bootstrap_servers: str | None, redis_url: str | None) -> None:
    """Raise InputError for the address of a server that is none."""
    given = (
        ("--bootstrap-servers", bootstrap_servers, KafkaClient, "bootstrap_servers"),
        ("--redis-url", redis_url, RedisClient, "url"),
    )
    for option, address, model, field in given:
        if address is not None:
            try:
                model.model_validate({field: address})
            except ValidationError as error:
                reason = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
                raise InputError(f"{option}: {reason}") from None  # pydantic's text shows passwords


def checked_settings(settings: Mapping[str, str], *, own_cluster: bool) -> dict[str, str]:
    """Return the settings of clients of the user's Kafka; raises InputError for one that relays do not know."""
    unknown = sorted(settings.keys() - _SECURITY.keys())
    if unknown:
        raise InputError(f"-X: relays do not know {', '.join(unknown)}; they know {', '.join(_SECURITY)}")
    if settings and not own_cluster:
        raise InputError("-X is for a Kafka of yours: name it with --bootstrap-servers")
    return with_authorities(settings)


def kafka_client(bootstrap_servers: str, settings: Mapping[str, str], directory: Path) -> KafkaClient:
    """Return how relays reach Kafka. Secrets are written to files in `directory` that only their owner reads.

    Raises InputError for settings that do not go together.
    """
    security: dict[str, Any] = {}
    oauth: dict[str, Any] = {}
    for name, value in settings.items():
        part, _, field = _SECURITY[name].rpartition(".")
        (oauth if part else security)[field] = _in_a_file(directory, name, value) if name in _SECRETS else value
    if oauth:
        security["oauth"] = _tokens(oauth)
    try:
        return KafkaClient(bootstrap_servers=bootstrap_servers, security=KafkaSecurity.model_validate(security))
    except ValidationError as error:
        problem = error.errors()[0]
        raise InputError(f"-X: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None


def _in_a_file(directory: Path, name: str, value: str) -> str:
    file = directory / _SECRETS[name]
    file.touch(mode=0o600)
    file.write_text(value, encoding="utf-8")
    return str(file)


def _tokens(oauth: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the issuer; raises InputError for a way to get tokens that relays do not know."""
    if oauth.pop("method", None) != "oidc":
        raise InputError(f"-X: relays get tokens by {_METHOD}=oidc alone: add it")
    if "extensions" in oauth:
        pairs = (pair.partition("=") for pair in oauth["extensions"].split(","))
        oauth["extensions"] = {name.strip(): value.strip() for name, _, value in pairs}
    return oauth


def known_topic(settings: Settings) -> KnownTopic:
    """Return what senders have to know of a DelayTopic."""
    schedule = settings.schedule
    return KnownTopic(
        name=f"{settings.namespace}/{settings.name}",
        source=settings.source.topic,
        target=settings.target.topic,
        dead_letter=settings.dead_letter.topic,
        allowed=tuple(settings.allowed_topics),
        fixed_delay_ms=schedule.fixed_delay.ms if schedule.fixed_delay is not None else None,
        max_delay_ms=schedule.max_delay.ms,
        takes_ids=schedule.fixed_delay is None and schedule.ids is not Ids.DISABLED,
        dialect=str(schedule.dialect),
    )


def _optional(settings: Settings, partitions: int) -> Iterator[tuple[TopicSettings, int, dict[str, str]]]:
    """Yield topics that not every DelayTopic has: an outcome is in the partition with the number of the source's."""
    history, outcomes = settings.history, settings.outcomes
    if history is not None:
        yield history, history.partitions or partitions, {}
    if outcomes is not None:
        yield outcomes, max(outcomes.partitions or partitions, partitions), {"cleanup.policy": "delete"}


def topic_plans(all_settings: Iterable[Settings], *, on_own_cluster: bool) -> list[TopicPlan]:
    """Return the topics to create. On the user's own cluster the broker's replication applies, and topics with
    `management: Observe` are left alone.
    """
    plans = []
    for settings in all_settings:
        source, target, dead_letter = settings.source, settings.target, settings.dead_letter
        partitions = source.partitions or DEFAULT_PARTITIONS
        # As the operator makes them, so that the audit can judge; what exists on the user's own Kafka keeps its clock.
        of_target = BROKERS_CLOCK if not on_own_cluster else {}
        of_source = BROKERS_CLOCK if not on_own_cluster or settings.schedule.fixed_delay else {}
        of_source |= {"cleanup.policy": "compact"} if settings.schedule.capabilities.tombstones else {}
        room = min(MOST_MESSAGE_BYTES, _largest_record(source) + DEAD_LETTER_HEADROOM_BYTES)
        wanted = [
            (source, partitions, of_source),
            (target, target.partitions or partitions, of_target),
            (dead_letter, dead_letter.partitions or 1, {"max.message.bytes": str(room)}),
            *_optional(settings, partitions),
        ]
        plans += [
            _plan(topic, count, implied, on_own_cluster)
            for topic, count, implied in wanted
            if not (on_own_cluster and topic.management is Management.OBSERVE)
        ]
        plans += _bucket_plans(settings, partitions, on_own_cluster)
    return plans


def relay_document(settings: Settings, *, kafka: KafkaClient, redis_url: str | None, http_port: int) -> RelayConfig:
    """Return the document that a relay of this DelayTopic starts with; its pages are for this machine only."""
    return relay_config(
        settings,
        kafka,
        RedisClient(url=redis_url) if redis_url is not None else None,
        HttpServer(host="127.0.0.1", port=http_port),
    )


def _bucket_plans(settings: Settings, partitions: int, on_own_cluster: bool) -> list[TopicPlan]:
    """Return the topics that the KafkaBuckets backend needs."""
    if settings.backend.type is not BackendType.KAFKA_BUCKETS:
        return []
    copies = (settings.source.replication_factor or BROKERS_OWN_REPLICATION) if on_own_cluster else 1
    horizon_ms, max_delay_ms = RelayLimits().horizon.ms, settings.schedule.max_delay.ms
    topics = bucket_topics(settings.backend.id, horizon_ms, max_delay_ms, _largest_record(settings.source))
    return [TopicPlan(topic.name, partitions, topic.config, copies) for topic in topics]


def _largest_record(source: TopicSettings) -> int:
    return int(source.config.get("max.message.bytes", DEFAULT_MAX_MESSAGE_BYTES))


def _plan(topic: TopicSettings, partitions: int, implied: dict[str, str], on_own_cluster: bool) -> TopicPlan:
    retention = {"retention.ms": str(topic.retention.ms)} if topic.retention else {}
    copies = (topic.replication_factor or BROKERS_OWN_REPLICATION) if on_own_cluster else 1
    return TopicPlan(topic.topic, partitions, {**retention, **implied, **topic.config}, copies)
