"""The record that outlives a DelayTopic: the topics that the operator may change or delete, and the backlog. Pure.

Kafka's topics carry no labels, so what the operator is about to own is written down before it is made. The record is a
ConfigMap in the operator's namespace, so that neither the DelayTopic nor its namespace takes it along.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from delaytopic_api import Settings
from delaytopic_api.documents import AuditedSlo, KafkaConnection, Model, Ownership
from delaytopic_api.values import BackendType
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.model.declared_rules import DeclaredRules
from delaytopic_operator.model.offsets_backup import OffsetsBackup, OutdatedOffsets, backup_text, parse_backup
from delaytopic_operator.model.reconciliation import Key

Document = dict[str, Any]

VERSION: Final = 1
DATA_KEY: Final = "record.json"
OFFSETS_KEY: Final = "progress.zlib.base64"
"""The key of the offsets, beside the record: thousands of partitions would make it unreadable, and too large for a
ConfigMap."""
COMPONENT: Final = "route-record"


class RecordState(StrEnum):
    """The state of the route."""

    ACTIVE = "Active"
    DRAINING = "Draining"
    RETAINED = "Retained"


class Role(StrEnum):
    """The role of a topic for a DelayTopic; the value is the field of spec and status."""

    SOURCE = "source"
    TARGET = "target"
    DEAD_LETTER = "deadLetter"
    HISTORY = "history"
    OUTCOMES = "outcomes"


_FIELDS: Final[Mapping[Role, str]] = {
    Role.SOURCE: "source",
    Role.TARGET: "target",
    Role.DEAD_LETTER: "dead_letter",
    Role.HISTORY: "history",
    Role.OUTCOMES: "outcomes",
}


class _Record(Model):
    # What an operator of the same version adds is kept when this one writes.
    model_config = ConfigDict(extra="allow")


class TopicRecord(_Record):
    """A topic, and how it came managed by the operator."""

    name: str
    """The topic's name."""
    ownership: Ownership
    """Created and Adopted topics are changed, and go with `deletionPolicy: Delete`; Observed ones are never touched."""
    topic_id: str | None = None
    """Kafka's id; None between the intent to create the topic and the first sight of it."""
    replaces: str | None = None
    """The id of a topic that was lost, and in whose place the operator made this one, as a person had accepted."""
    stranger_id: str | None = None
    """Another id that was seen under this name, and told in an event."""


class RouteRecord(_Record):
    """Everything that is written down about one DelayTopic."""

    version: Literal[1] = VERSION
    """The version of this form; a newer one is not touched."""
    namespace: str
    """The namespace of the DelayTopic."""
    name: str
    """The name of the DelayTopic."""
    namespace_uid: str
    """A namespace that was made anew may belong to somebody else, who must not get this backlog."""
    class_name: str | None = None
    """The DelayClass whose connection reaches the topics; None for an inline connection."""
    connection: KafkaConnection | None = None
    """The inline connection: it names Secrets of the namespace, and holds none."""
    cluster_id: str | None = None
    """The id of the Kafka cluster; None until it was asked."""
    group_id: str
    """The relays' consumer group."""
    source: TopicRecord | None = None
    """The topic that the backlog comes from."""
    target: TopicRecord | None = None
    """The topic that it goes to."""
    dead_letter: TopicRecord | None = None
    """The topic for refused records."""
    history: TopicRecord | None = None
    """The topic for copies of what was delivered."""
    outcomes: TopicRecord | None = None
    """The topic that tells how schedules ended."""
    allowed_topics: list[str] = Field(default_factory=list)
    """The globs of further topics that records may name."""
    buckets: dict[str, TopicRecord] = Field(default_factory=dict)
    """Topics of the KafkaBuckets backend by name, those of a former backend among them until they are empty."""
    backend_type: BackendType
    """The backend in which schedules wait."""
    backend_id: str
    """Their name there."""
    state: RecordState = RecordState.ACTIVE
    """The state of the route."""
    pending: int | None = None
    """The number of records that were pending when the backlog was retained."""
    last_due_ms: int | None = None
    """The latest due time among them, as far as it was known."""
    drain_since_ms: int | None = None
    """While it drains: when that began."""
    drain_until_ms: int | None = None
    """While it drains: when what is still pending is retained."""
    source_partitions: int | None = None
    """While it drains: how many there are to account for."""
    outdated: OutdatedOffsets | None = None
    """Older offsets than those that relays had last committed, which had to be restored."""
    rules: DeclaredRules | None = None
    """The rules by which relays read; None until they were first seen."""
    audited: AuditedSlo | None = None
    """The figures of the last audit, of which the status shows some; None before the first."""
    offsets: OffsetsBackup | None = Field(default=None, exclude=True)
    """The relays' committed offsets when there were none left; they have a text of their own in the ConfigMap."""

    @property
    def key(self) -> Key:
        """The DelayTopic."""
        return Key(self.namespace, self.name)

    def of_role(self, role: Role) -> TopicRecord | None:
        """The topic of a role."""
        topic: TopicRecord | None = getattr(self, _FIELDS[role])
        return topic

    def with_role(self, role: Role, topic: TopicRecord | None) -> RouteRecord:
        """Return the record with another topic in a role."""
        return self.model_copy(update={_FIELDS[role]: topic})

    def with_buckets(self, buckets: Mapping[str, TopicRecord]) -> RouteRecord:
        """Return the record with other bucket topics."""
        return self.model_copy(update={"buckets": dict(buckets)})

    def in_state(
        self, state: RecordState, *, pending: int | None = None, last_due_ms: int | None = None
    ) -> RouteRecord:
        """Return the record at another state."""
        now = {"state": state, "pending": pending, "last_due_ms": last_due_ms}
        over = {"drain_since_ms": None, "drain_until_ms": None, "source_partitions": None}
        return self.model_copy(update={**now, **over})

    def draining(
        self, since_ms: int, until_ms: int, *, pending: int | None, source_partitions: int | None
    ) -> RouteRecord:
        """Return the record while what is pending leaves at its own time; `pending` is how many they were at first."""
        drain = {"drain_since_ms": since_ms, "drain_until_ms": until_ms, "source_partitions": source_partitions}
        return self.in_state(RecordState.DRAINING, pending=pending).model_copy(update=drain)


def record_name(key: Key) -> str:
    """Name the ConfigMap that holds the record of a DelayTopic: nobody can make a key of the same name."""
    return f"delay-backlog-{_digest(key)}"


def _digest(key: Key) -> str:
    return hashlib.sha256(str(key).encode()).hexdigest()


def is_record(document: Mapping[str, Any], operator_namespace: str) -> bool:
    """Tell the operator's own records from objects that only look like one: anybody may write those elsewhere."""
    metadata = document["metadata"]
    component = (metadata.get("labels") or {}).get("app.kubernetes.io/component")
    own = metadata.get("namespace") == operator_namespace and component == COMPONENT
    return own and document.get("kind") == "ConfigMap"


def begin_record(settings: Settings, namespace_uid: str) -> RouteRecord:
    """The record of a DelayTopic that has none yet; no topic is managed by the operator."""
    return RouteRecord(
        namespace=settings.namespace,
        name=settings.name,
        namespace_uid=namespace_uid,
        class_name=settings.class_name,
        connection=_inline(settings),
        group_id=settings.group_id,
        allowed_topics=settings.allowed_topics,
        backend_type=settings.backend.type,
        backend_id=settings.backend.id,
    )


def continue_record(record: RouteRecord, settings: Settings) -> RouteRecord:
    """The record of a living route under the settings of now: of another class or backend, perhaps, and Active.

    Ask `refusal_to_resume` first.
    """
    now = {
        "class_name": settings.class_name,
        "connection": _inline(settings),
        "group_id": settings.group_id,
        "allowed_topics": settings.allowed_topics,
        "backend_type": settings.backend.type,
        "backend_id": settings.backend.id,
    }
    return record.model_copy(update=now).in_state(RecordState.ACTIVE)


def _inline(settings: Settings) -> KafkaConnection | None:
    return settings.connection if settings.class_name is None else None


def refusal_to_resume(record: RouteRecord, settings: Settings, namespace_uid: str) -> str | None:
    """Return why the backlog of a record must not go on under these settings: a sentence, None if it may."""
    discard = f"or discard it with the annotation delaytopic.dev/discard-retained: {record.backend_id}"
    if record.namespace_uid != namespace_uid and record.pending != 0:
        return (
            f"a backlog of a former namespace {record.namespace} is still retained; it may be somebody else's: "
            f"use another name, {discard}"
        )
    now = {Role.SOURCE: settings.source.topic, Role.TARGET: settings.target.topic}
    for role, topic in now.items():
        recorded = record.of_role(role)
        if recorded is not None and recorded.name != topic:
            return (
                f"a backlog of {record.key} is retained whose {role.value} is {recorded.name}, not {topic}: "
                f"apply it again with {role.value}.topic: {recorded.name}, {discard}"
            )
    return None


def record_document(record: RouteRecord, operator_namespace: str) -> dict[str, Any]:
    """The ConfigMap to apply."""
    labels = {
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "app.kubernetes.io/component": COMPONENT,
        "delaytopic.dev/namespace": record.namespace,
        "delaytopic.dev/name": record.name,
    }
    text = json.dumps(record.to_document(), indent=2, sort_keys=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": record_name(record.key), "namespace": operator_namespace, "labels": labels},
        "data": {DATA_KEY: text, **({OFFSETS_KEY: backup_text(record.offsets)} if record.offsets else {})},
    }


def find_record(made: Iterable[Document], key: Key, operator_namespace: str) -> Document | None:
    """Find the ConfigMap that holds the record of a DelayTopic, among objects that carry its labels."""
    records = (each for each in made if is_record(each, operator_namespace))
    return next((each for each in records if each["metadata"]["name"] == record_name(key)), None)


def record_of(document: Mapping[str, Any], key: Key) -> RouteRecord:
    """Parse the record of this DelayTopic. Raises `RecordUnreadable`, also for the record of another one."""
    record = parse_record(document)
    if record.key != key:
        name = document["metadata"]["name"]
        raise RecordUnreadable(
            f"the ConfigMap {name} holds the record of {record.key}, not of {key}: nothing in it is used; restore it, "
            "or delete it to start anew: topics that are there then need management: Adopt"
        )
    return record


def parse_record(document: Mapping[str, Any]) -> RouteRecord:
    """The record that a ConfigMap holds. Raises `RecordUnreadable`, also for one that a newer operator wrote."""
    name = document.get("metadata", {}).get("name", "")
    try:
        content = json.loads(document["data"][DATA_KEY])
        version = content["version"]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordUnreadable(
            f"the ConfigMap {name} is no record of a route ({DATA_KEY}: {error!r}); restore it, or delete it to "
            "start anew: topics that are there then need management: Adopt"
        ) from error
    if isinstance(version, int) and version > VERSION:
        raise RecordUnreadable(
            f"the ConfigMap {name} was written by a newer operator (version {version}, this one knows up to "
            f"{VERSION}); update the operator: nothing is changed meanwhile"
        )
    try:
        return RouteRecord.model_validate(content).model_copy(update={"offsets": _offsets(name, document)})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise RecordUnreadable(
            f"the ConfigMap {name} is no record of a route ({path}: {first['msg']}); restore it, or delete it to "
            "start anew: topics that are there then need management: Adopt"
        ) from error


def _offsets(name: str, document: Mapping[str, Any]) -> OffsetsBackup | None:
    text = document["data"].get(OFFSETS_KEY)
    if text is None:
        return None
    try:
        return parse_backup(text)
    except ValueError as error:
        raise RecordUnreadable(
            f"the ConfigMap {name} holds offsets of relays that cannot be read ({OFFSETS_KEY}: {error}); restore it, "
            "or delete the key: without offsets in Kafka either, relays deliver everything again that the source holds"
        ) from error
