"""The observation that a reconciliation decides by: the object, its topics, its relays and what was written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.kafka_view import KafkaView
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.model.rollouts import NoTurn, Rollouts
from delaytopic_operator.observe.audit_verdict import AuditVerdict, VerdictMessage
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.resources import RelayIdentity
from delaytopic_operator.rules.revoked import Revoked
from delaytopic_operator.rules.validate import Accepted, Refusal, relay_namespace
from delaytopic_operator.topics.desired import Bucket
from delaytopic_operator.topics.strimzi import StrimziTopics
from delaytopic_process.open_transactions import OpenTransaction

Document = Mapping[str, Any]

PAUSE = "delaytopic.dev/pause-reconciliation"
NO_ROLLOUTS: Final = Rollouts()


@dataclass(frozen=True)
class NamespaceFacts:
    """The namespace of a DelayTopic; a namespace that was made anew has another uid."""

    uid: str
    labels: Mapping[str, str]
    terminates: bool


@dataclass(frozen=True)
class Topics:
    """The topics of a DelayTopic, as Kafka has them."""

    view: KafkaView
    buckets: Sequence[Bucket] = ()
    """The bucket topics that the backend needs."""
    released: frozenset[str] = frozenset()
    """The topics of a former backend that hold nothing any more."""
    strimzi: StrimziTopics | None = None
    cluster_id: str | None = None
    """The id that the cluster gives itself; None where it does not say."""
    offsets_retention_ms: int | None = None
    """The time for which the brokers keep the offsets of a group without members; None where that may not be read."""
    open_transactions: Mapping[int, OpenTransaction] = field(default_factory=dict)
    """The transactions of producers, by partition of the source, that keep relays from reading further."""
    other_clusters: frozenset[str] = frozenset()
    """The marks of other Kubernetes clusters whose relays are in the same group; empty where that may not be read."""


@dataclass(frozen=True)
class Problem:
    """Something that cannot be looked at now: a word for programs, a sentence, and whether a person has to act."""

    reason: str
    message: str
    stalled: bool = False
    passing: bool = False
    """True if the other side only does not answer, so that nothing is known."""


@dataclass(frozen=True)
class CommittedOffsets:
    """The offsets that the relays' group has committed of the source: asked while there are no relays."""

    read: OffsetsBackup | None = None
    """None: it could not be read, or the source is not the one that was written down."""
    problem: Problem | None = None


class OfObject:
    """The parts of an object as it was last seen."""

    document: Mapping[str, Any] | None
    """The object; None when it is gone."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return its metadata; empty when it is gone."""
        return self.document["metadata"] if self.document is not None else {}

    @property
    def status(self) -> Mapping[str, Any]:
        """Return the status that was written last."""
        return (self.document or {}).get("status") or {}

    @property
    def is_going(self) -> bool:
        """True if it is being deleted."""
        return "deletionTimestamp" in self.metadata


@dataclass(frozen=True)
class RouteFacts(OfObject):
    """The facts of a DelayTopic that are declared or written down: they change when somebody writes."""

    document: Document | None
    """The DelayTopic; None when it is gone, on the API server's own word."""
    namespace: NamespaceFacts | None
    verdict: Accepted | Refusal | None
    """None when the DelayTopic is gone."""
    record: RouteRecord | None
    record_problem: Problem | None
    objects: Sequence[dict[str, Any]]
    """The objects that the operator made for it, without its record and pods."""
    kube_cluster: str | None = None
    """The mark of this Kubernetes cluster, which relays' names in their group end with; None: it is not known."""
    revoked: Revoked | None = None
    """The right that was taken away from relays that run; None where the DelayTopic is accepted, too."""
    secrets: Mapping[str, Document | None] = field(default_factory=dict, repr=False)
    """The Secrets that relays need, by name; None for one that is not there."""
    secrets_version: str = ""
    """Changes with what they hold."""
    secrets_problem: Problem | None = None
    unreachable_since_ms: int | None = None
    """The time since when one that goes cannot be accounted for; None: it can be."""
    rollouts: Rollouts = NO_ROLLOUTS
    """The DelayTopics whose relays start anew just now, and the images with which no further ones do."""
    no_turn: NoTurn | None = None
    """The turn that its relays were refused; None: they may start anew as far as is known."""

    @property
    def accepted(self) -> Accepted | None:
        """The settings in force, if it may be acted upon."""
        return self.verdict if isinstance(self.verdict, Accepted) else None

    @property
    def kafka_cluster(self) -> str | None:
        """The Kafka cluster that it is about, by its servers; None where it is about none."""
        connection = self.accepted.settings.connection if self.accepted is not None else None
        return ",".join(sorted(connection.bootstrap_servers.split(","))) if connection is not None else None

    @property
    def is_suspended(self) -> bool:
        """True if relays are to stop, as their class no longer allows what they do."""
        return self.revoked is not None and self.revoked.suspends

    @property
    def waits_to_roll(self) -> bool:
        """True if the change of the class is not applied as others have all turns to start anew."""
        return self.follows_class and self.no_turn is not None

    @property
    def is_changed(self) -> bool:
        """True if its author changed the DelayTopic, and nobody has acted upon it yet."""
        return self.status.get("observedGeneration") != self.metadata.get("generation")

    @property
    def follows_class(self) -> bool:
        """True while a change of the class is not applied yet."""
        of_class = self.accepted.delay_class if self.accepted is not None else None
        applied = (self.status.get("effective") or {}).get("delayClassGeneration")
        return of_class is not None and applied is not None and applied != of_class.metadata.generation

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the DelayTopic."""
        return self.metadata.get("annotations") or {}

    @property
    def goes_with_namespace(self) -> bool:
        """True if it is being deleted because its namespace is, which must wait for nobody."""
        return self.is_going and (self.namespace is None or self.namespace.terminates)


@dataclass(frozen=True)
class AuditFacts:
    """The words of the audit that a DelayTopic is part of."""

    slo: AuditVerdict | None = None
    """The verdict of the last audit."""
    served: VerdictMessage | None = None
    """The verdict that the audit has served last."""
    failure: str | None = None
    """The reason why the audit cannot be set up."""
    job: Mapping[str, Any] | None = None
    """The CronJob of the audit; None: there is none."""


@dataclass(frozen=True)
class Observation:
    """One look at one DelayTopic, in which its topics, its backend and its relays are as far as they could be had."""

    key: Key
    now_ms: int
    config: OperatorConfig
    route: RouteFacts
    fleet: FleetFacts
    audit: AuditFacts = AuditFacts()
    topics: Topics | None = None
    topics_problem: Problem | None = None
    backend: Condition | None = None
    """The condition about Redis; None: nothing, or there is none."""
    committed: CommittedOffsets | None = None
    """None where there was no reason to ask."""


def identity_of(seen: Observation, accepted: Accepted) -> RelayIdentity:
    """Name the relays' place: beside an object with a connection of its own, else where the class says."""
    namespace = relay_namespace(seen.key, accepted.delay_class, seen.config)
    uid = str(seen.route.metadata.get("uid", ""))
    owned = accepted.delay_class is None
    return RelayIdentity(seen.key, uid, namespace, owned=owned, kube_cluster=seen.route.kube_cluster)


def is_paused(seen: Observation) -> bool:
    """Tell if nothing is to be changed.

    A namespace that is being deleted waits for nobody, and nobody keeps a right by the annotation that was taken away.
    """
    return (
        seen.route.annotations.get(PAUSE) == "true"
        and not seen.route.goes_with_namespace
        and not seen.route.is_suspended
    )


def policy_of(seen: Observation) -> DeletionPolicy:
    """Return what the object says; nothing is removed by a record that cannot be read or may be somebody else's."""
    spec = (seen.route.document or {}).get("spec") or {}
    policy = DeletionPolicy(spec.get("deletionPolicy", DeletionPolicy.DRAIN))
    unsafe = seen.route.record_problem is not None or _is_of_former_namespace(seen)
    return DeletionPolicy.RETAIN if policy is DeletionPolicy.DELETE and unsafe else policy


def _is_of_former_namespace(seen: Observation) -> bool:
    """Tell whether the record is that of a namespace of the same name that somebody else may have had."""
    record, namespace = seen.route.record, seen.route.namespace
    return record is not None and namespace is not None and record.namespace_uid != namespace.uid


def address_of(document: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return kind, namespace and name."""
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]
