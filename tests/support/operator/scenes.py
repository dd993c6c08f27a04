"""DelayTopics that go, as a pass finds them: everything usual unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from delaytopic_api import DelayClass, RelayStatus, load_document
from delaytopic_api.documents import Ownership
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.plan import FINALIZER
from delaytopic_operator.model.conditions import instant
from delaytopic_operator.model.declared_rules import declared, taken_over
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import Role, RouteRecord, TopicRecord, begin_record
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage
from delaytopic_operator.observe.observation import NamespaceFacts, Observation, RouteFacts
from delaytopic_operator.resources import relays_name
from delaytopic_operator.rules.validate import Accepted, QuotaUsage, Refusal, Subject, check

KEY = Key("shop", "reminders")
NOW_MS = 1_795_269_686_000
DECLARED_MS = NOW_MS - 3_600_000
"""The time at which its rules were declared, and taken over."""
NAMESPACE_UID = "namespace-1"
UID = "object-1"
CONFIG = OperatorConfig()
BACKEND_ID = "delaytopic.shop.reminders"
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": relays_name(KEY), "namespace": CONFIG.namespace, "uid": "d-1", "generation": 1},
    "spec": {"replicas": 1},
    "status": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1},
}
POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "relay-1", "namespace": CONFIG.namespace}}


def delay_class(**spec: Any) -> DelayClass:
    """The only one, with further fields of its spec."""
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": "standard"},
        "spec": {
            "connection": {"bootstrapServers": "kafka:9092"},
            "backend": {"type": "RedisZset", "redis": {"url": "redis://redis:6379"}},
            **spec,
        },
    }
    parsed = load_document(document)
    assert isinstance(parsed, DelayClass)
    return parsed


def document(*, deleted_ms: int | None = NOW_MS, annotations: Mapping[str, str] | None = None, **spec: Any) -> Any:
    """The DelayTopic, deleted at a time or (None) living."""
    metadata: dict[str, Any] = {"namespace": KEY.namespace, "name": KEY.name, "uid": UID, "generation": 1}
    metadata |= {"creationTimestamp": instant(NOW_MS - 3_600_000), "finalizers": [FINALIZER]}
    metadata |= {"annotations": dict(annotations or {})}
    if deleted_ms is not None:
        metadata["deletionTimestamp"] = instant(deleted_ms)
    usual = {"delayClassName": "standard", "source": {"topic": "shop.a"}, "target": {"topic": "shop.b"}}
    of_kind = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic"}
    return {**of_kind, "metadata": metadata, "spec": {**usual, **spec}}


def page(pending: int, *, state: str = "Delivering", partitions: int = 1) -> RelayPage:
    """Return what one relay says that has all partitions; what is pending is in the first."""
    shards = [
        {"partition": number, "state": state, "committedOffset": 0, "position": 0, "overdue": 0, "ingestLag": 0}
        | {"pending": pending if number == 0 else 0}
        for number in range(partitions)
    ]
    counts = ("deliveredTotal", "deadLetteredTotal", "supersededTotal", "cancelledTotal", "overdue", "ingestLag")
    status = {
        "relay": "relay-1",
        "delayTopic": str(KEY),
        "startedAtMs": NOW_MS - 60_000,
        "asOfMs": NOW_MS,
        "state": "Running",
        "guarantee": "ExactlyOnce",
        "backend": "RedisZset",
        "speedups": True,
        **dict.fromkeys(counts, 0),
        "pending": pending,
        "memoryBytes": 0,
        "shards": shards,
    }
    return RelayPage("relay-1", RelayStatus.model_validate(status))


def fleet(pending: int | None) -> FleetFacts:
    """One relay that says so; None: it does not answer."""
    pages = [page(pending)] if pending is not None else [RelayPage("relay-1", None, "does not answer")]
    return FleetFacts(DEPLOYMENT, [POD], pages, 1)


NO_FLEET = FleetFacts(None, [], [], 1)


def verdict(found: Mapping[str, Any] | None, *, has_class: bool = True) -> Accepted | Refusal | None:
    """Of the DelayTopic, as the rules have it."""
    if found is None:
        return None
    classes = [delay_class()] if has_class else []
    return check(Subject(KEY, found, classes, {}, quota_usage=QuotaUsage(0, 0), conflict=None))


def record(namespace_uid: str = NAMESPACE_UID) -> RouteRecord:
    """Of the living route; its source was created."""
    accepted = verdict(document(deleted_ms=None))
    assert isinstance(accepted, Accepted)
    began = begin_record(accepted.settings, namespace_uid)
    source = TopicRecord(name="shop.a", ownership=Ownership.CREATED, topic_id="a-1")
    rules = taken_over(declared(None, accepted.settings, DECLARED_MS), DECLARED_MS)
    return began.with_role(Role.SOURCE, source).model_copy(update={"rules": rules})


def seen(
    found: Mapping[str, Any] | None,
    *,
    has_class: bool = True,
    pending: int | None = 0,
    terminates: bool = False,
    **changes: Any,
) -> Observation:
    """A look at it; `changes` are fields of the observation or of its facts."""
    route = RouteFacts(
        document=found,
        namespace=NamespaceFacts(NAMESPACE_UID, {}, terminates),
        verdict=verdict(found, has_class=has_class),
        record=record(),
        record_problem=None,
        objects=[DEPLOYMENT],
    )
    return altered(Observation(KEY, NOW_MS, CONFIG, route, fleet(pending)), **changes)


def altered(seen: Observation, **changes: Any) -> Observation:
    """Return the look with other fields: its own, those of its facts of the route, of the fleet or of the audit."""
    for part in ("route", "fleet", "audit"):
        facts = changes.pop(part, getattr(seen, part))
        names = {each.name for each in fields(facts)} & changes.keys()
        changes |= {part: replace(facts, **{name: changes.pop(name) for name in names})}
    return replace(seen, **changes)
