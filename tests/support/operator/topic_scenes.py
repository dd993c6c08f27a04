"""DelayTopics and clusters for the tests of the topic side; a cluster is a dict of topics that a plan is done to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

from delaytopic_api import DelayClass, DelayTopic, Settings, load_document, resolve
from delaytopic_api.documents import DelayTopicSpec
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.record import RouteRecord, begin_record
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction
from delaytopic_operator.topics.desired import Bucket
from delaytopic_operator.topics.plan import TopicPlan, plan_topics, topic_names

BROKER_DEFAULTS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}
DEFAULT_PARTITIONS = 2
DEFAULT_COPIES = 1
NAMESPACE_UID = "uid-of-shop"
SOURCE, TARGET, DEAD_LETTER = "shop.reminders.delayed", "shop.reminders", "shop.reminders.delayed.dlq"
CONNECTION = {"bootstrapServers": "kafka.shop:9092"}


class Wanted(NamedTuple):
    """A DelayTopic that was accepted."""

    settings: Settings
    spec: DelayTopicSpec


class BucketTopic(NamedTuple):
    """A topic of the backend KafkaBuckets."""

    name: str
    config: dict[str, str]


def wanted(*, of_class: Mapping[str, Any] | None = None, **spec: Any) -> Wanted:
    """A DelayTopic with Redis; `source`, `target` and `deadLetter` are added to the usual ones."""
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": "reminders", "namespace": "shop"},
        "spec": {
            **({} if of_class is not None else {"connection": CONNECTION}),
            "backend": {"type": "KafkaBuckets"},
            **spec,
            "source": {"topic": SOURCE, **spec.get("source", {})},
            "target": {"topic": TARGET, **spec.get("target", {})},
        },
    }
    if "deadLetter" in spec:
        document["spec"]["deadLetter"] = {"topic": DEAD_LETTER, **spec["deadLetter"]}  # type: ignore[index]
    topic = load_document(document)
    assert isinstance(topic, DelayTopic)
    return Wanted(resolve(topic, _class(of_class) if of_class is not None else None), topic.spec)


def _class(spec: Mapping[str, Any]) -> DelayClass:
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": "standard"},
        "spec": {"connection": CONNECTION, **spec},
    }
    delay_class = load_document(document)
    assert isinstance(delay_class, DelayClass)
    return delay_class


def facts(name: str, topic_id: str = "id-1", partitions: int = 2, copies: int = 1, **config: str) -> TopicFacts:
    """A topic; in the names of settings an underscore is a dot."""
    own = {key.replace("_", "."): value for key, value in config.items()}
    return TopicFacts(name, topic_id, partitions, copies, {**BROKER_DEFAULTS, **own}, frozenset(own))


@dataclass
class World:
    """A cluster, and what is written down; `forbidden` topics are there, and may not be seen."""

    topics: dict[str, TopicFacts] = field(default_factory=dict)
    record: RouteRecord | None = None
    forbidden: frozenset[str] = frozenset()
    done: list[TopicAction] = field(default_factory=list)
    _ids: Iterable[int] = field(default_factory=lambda: count(1))

    @classmethod
    def of(cls, *topics: TopicFacts, record: RouteRecord | None = None) -> World:
        """With these topics."""
        return cls({topic.name: topic for topic in topics}, record)

    def view(self, names: Iterable[str]) -> KafkaView:
        """Return what the operator sees."""
        asked = frozenset(names)
        there = {name: self.topics[name] for name in asked if name in self.topics and name not in self.forbidden}
        return KafkaView(there, asked - self.topics.keys() - self.forbidden, self.forbidden & asked)

    def plan(
        self,
        wanted: Wanted,
        annotations: Mapping[str, str] | None = None,
        buckets: tuple[Bucket, ...] = (),
        released: frozenset[str] = frozenset(),
    ) -> TopicPlan:
        """The plan for what is there now."""
        record = self.record or begin_record(wanted.settings, NAMESPACE_UID)
        view = self.view(topic_names(wanted.settings, record, buckets))
        return plan_topics(wanted.settings, wanted.spec, view, record, annotations, buckets, released)

    def carry_out(self, plan: TopicPlan, steps: int | None = None) -> None:
        """Do the plan, or only its first steps, of which the first is to write the record."""
        for step, do in enumerate([plan.record, *plan.actions]):
            if steps is not None and step >= steps:
                return
            if isinstance(do, RouteRecord):
                self.record = do
            else:
                self._perform(do)

    def settle(
        self, wanted: Wanted, annotations: Mapping[str, str] | None = None, buckets: tuple[Bucket, ...] = ()
    ) -> TopicPlan:
        """Passes until nothing is left to do; the last plan."""
        for _ in range(5):
            plan = self.plan(wanted, annotations, buckets)
            self.carry_out(plan)
            if not plan.actions and self.plan(wanted, annotations, buckets) == plan:
                return plan
        raise AssertionError(f"there is still something to do: {plan.actions}")

    def make(self, name: str, partitions: int, copies: int, config: Mapping[str, str]) -> None:
        """A new topic, by whomever."""
        number = next(iter(self._ids))
        self.topics[name] = TopicFacts(
            name, f"id-of-{name}-{number}", partitions, copies, {**BROKER_DEFAULTS, **config}, frozenset(config)
        )

    def _perform(self, action: TopicAction) -> None:
        self.done.append(action)
        topic = self.topics.get(action.name)
        match action:
            case CreateTopic():
                if topic is None:
                    partitions = action.partitions if action.partitions > 0 else DEFAULT_PARTITIONS
                    copies = action.replication_factor if action.replication_factor > 0 else DEFAULT_COPIES
                    self.make(action.name, partitions, copies, action.config)
            case GrowTopic():
                assert topic is not None
                self.topics[action.name] = replace(topic, partitions=max(topic.partitions, action.partitions))
            case SetConfig():
                assert topic is not None
                assert topic.config is not None
                self.topics[action.name] = replace(
                    topic, config={**topic.config, **action.config}, own_config=topic.own_config | action.config.keys()
                )
            case DeleteTopic():
                del self.topics[action.name]
