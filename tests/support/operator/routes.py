"""DelayTopics with all that is made for them, from YAML and as short as a test wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from delaytopic_api import DelayClass, DelayTopic, Settings, class_for, load_documents, resolve
from delaytopic_api.loading import validate
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.reconciliation import Key, audit_key
from delaytopic_operator.resources import RelayIdentity, Remembered, audit_objects, relay_objects
from delaytopic_operator.resources.identity import Document

D = TypeVar("D", DelayTopic, DelayClass)

UID = "0c5e5f6e-3f0b-4d8a-9d57-1f6c3a2b4d5e"
INLINE = {"bootstrapServers": "kafka:9092"}
SCRAM = {"type": "ScramSha512", "username": "delay", "passwordSecret": {"secretName": "delay-scram"}}
CLASS = {"connection": {"bootstrapServers": "kafka.platform:9093", "authentication": SCRAM}}


@dataclass(frozen=True)
class Route:
    """A DelayTopic, its class, and how the operator is configured."""

    topic: DelayTopic
    delay_class: DelayClass | None = None
    config: OperatorConfig = field(default_factory=OperatorConfig)

    @property
    def settings(self) -> Settings:
        return resolve(self.topic, self.delay_class)

    @property
    def identity(self) -> RelayIdentity:
        metadata, of_class = self.topic.metadata, self.delay_class
        where = (of_class.spec.relay_namespace or self.config.namespace) if of_class else metadata.namespace
        return RelayIdentity(Key(metadata.namespace, metadata.name), metadata.uid or UID, where, of_class is None)

    def relay_objects(self, secrets_version: str = "1", replicas: int | None = 2) -> list[Document]:
        template = self.delay_class.spec.relay if self.delay_class else None
        return relay_objects(
            self.settings, self.identity, self.topic, template, self.config, secrets_version, replicas, Remembered()
        )

    def audit(self) -> list[Document]:
        """Return the audit of it, alone of its class or of its namespace."""
        return audit_objects(self.audit_key, self.delay_class, [self.topic], self.config)

    def audit_of(self, *names: str) -> list[Document]:
        """Return the audit of DelayTopics like this one, of these names, together."""
        return audit_objects(self.audit_key, self.delay_class, self.named(*names), self.config)

    def named(self, *names: str) -> list[DelayTopic]:
        """The same DelayTopic under other names."""
        metadata = self.topic.metadata
        return [
            self.topic.model_copy(update={"metadata": metadata.model_copy(update={"name": name})}) for name in names
        ]

    @property
    def audit_key(self) -> Key:
        return audit_key(self.topic.metadata.namespace, self.settings.class_name)

    def documents(self) -> list[Document]:
        return [*self.relay_objects(), *self.audit()]

    def relay_object(self, kind: str) -> Document:
        """The only one of a kind, audits left out."""
        (document,) = (each for each in self.relay_objects() if each["kind"] == kind)
        return document

    def audit_object(self, kind: str) -> Document:
        """The first document of a kind that an audit needs."""
        return next(each for each in self.audit() if each["kind"] == kind)

    def pod(self) -> Document:
        """The pod template of the relays."""
        template: Document = self.relay_object("Deployment")["spec"]["template"]
        return template

    def container(self) -> Document:
        """The relays' only container."""
        (container,) = self.pod()["spec"]["containers"]
        return dict(container)


def route(
    *,
    of_class: dict[str, Any] | None = None,
    config: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Route:
    """A DelayTopic with these fields in its spec; its connection is inline, unless there is a DelayClass's spec."""
    names = {"name": "order-reminders", "namespace": "shop"}
    wanted: dict[str, Any] = {"source": {"topic": "shop.a"}, "target": {"topic": "shop.b"}}
    if of_class is None:
        wanted |= {"connection": INLINE, "backend": {"type": "KafkaBuckets"}}
    topic = _document(DelayTopic, names | (metadata or {}), wanted | spec)
    operator = validate(OperatorConfig, config or {})
    if of_class is None:
        return Route(topic, None, operator)
    return Route(topic, _document(DelayClass, {"name": "standard"}, CLASS | of_class), operator)


def route_of_yaml(text: str, config: OperatorConfig) -> Route:
    """The one DelayTopic of a YAML text, with the class that it uses."""
    documents = load_documents(text)
    (topic,) = (each for each in documents if isinstance(each, DelayTopic))
    return Route(topic, class_for(topic, [each for each in documents if isinstance(each, DelayClass)]), config)


def _document(model: type[D], metadata: dict[str, Any], spec: dict[str, Any]) -> D:
    content = {"apiVersion": "delaytopic.dev/v1beta1", "kind": model.__name__, "metadata": metadata, "spec": spec}
    return validate(model, content)
