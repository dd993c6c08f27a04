"""Names, columns, selectable fields and scale subresource of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from delaytopic_api.documents.delay_class import DelayClass
from delaytopic_api.documents.delay_topic import DelayTopic
from delaytopic_api.documents.model import Model
from delaytopic_api.documents.recurring_record import RecurringRecord

DETAIL: Final = 1
"""The priority of a column that only `kubectl get -o wide` shows."""


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    priority: int = 0

    def document(self) -> dict[str, Any]:
        """Return the part of a CustomResourceDefinition."""
        priority = {"priority": self.priority} if self.priority else {}
        return {"name": self.name, "type": self.type, "jsonPath": self.path, **priority}


@dataclass(frozen=True)
class Scale:
    """The paths from which the scale subresource reads its numbers."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True)
class Kind:
    """One kind of object."""

    model: type[Model]
    plural: str
    singular: str
    short_name: str
    scope: Literal["Namespaced", "Cluster"]
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    scale: Scale | None = None

    @property
    def name(self) -> str:
        """Such as DelayTopic."""
        return self.model.__name__


def _condition(type: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{type}")].{field}'


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

KINDS: Final = (
    Kind(
        model=DelayTopic,
        plural="delaytopics",
        singular="delaytopic",
        short_name="dtopic",
        scope="Namespaced",
        columns=(
            Column("Ready", _condition("Ready", "status")),
            Column("Reason", _condition("Ready", "reason")),
            Column("Pending", ".status.backlog.pending", "integer"),
            Column("Overdue", ".status.backlog.overdue", "integer"),
            Column("Next Due", ".status.backlog.nextDue"),  # a date would be shown as an age, and this is in the future
            Column("P99", ".status.slo.latenessP99"),
            Column("Counted", ".status.backlog.asOf", "date", priority=DETAIL),
            Column("Relays", ".status.relay.summary", priority=DETAIL),
            Column("Source", ".spec.source.topic", priority=DETAIL),
            Column("Target", ".spec.target.topic", priority=DETAIL),
            Column("Class", ".status.effective.delayClass", priority=DETAIL),
            Column("Backend", ".status.backend.type", priority=DETAIL),
            Column("Precision", ".status.effective.precision", priority=DETAIL),
            Column("Budget-Left", ".status.slo.budgetLeftPercent", priority=DETAIL),
            Column("Message", _condition("Ready", "message"), priority=DETAIL),
            AGE,
        ),
        selectable=(".spec.source.topic", ".spec.target.topic", ".spec.delayClassName"),
        scale=Scale(".spec.relay.replicas", ".status.relay.replicas", ".status.relay.selector"),
    ),
    Kind(
        model=DelayClass,
        plural="delayclasses",
        singular="delayclass",
        short_name="dclass",
        scope="Cluster",
        columns=(
            Column("Accepted", _condition("Accepted", "status")),
            Column("Users", ".status.users", "integer"),
            Column("Default", r".metadata.annotations.delaytopic\.dev/is-default-class"),
            Column("Backend", ".spec.backend.type"),
            Column("Brokers", ".spec.connection.bootstrapServers"),
            Column("Relay-Namespace", ".spec.relayNamespace", priority=DETAIL),
            Column("Message", _condition("Accepted", "message"), priority=DETAIL),
            AGE,
        ),
    ),
    Kind(
        model=RecurringRecord,
        plural="recurringrecords",
        singular="recurringrecord",
        short_name="recurring",
        scope="Namespaced",
        columns=(
            Column("Ready", _condition("Ready", "status")),
            Column("Reason", _condition("Ready", "reason")),
            Column("DelayTopic", ".spec.delayTopic"),
            Column("Cron", ".spec.cron"),
            Column("Every", ".spec.every"),
            Column("Last", ".status.last"),
            Column("Next", ".status.next"),
            Column("Missed", ".status.missed", "integer", priority=DETAIL),
            Column("Zone", ".spec.timeZone", priority=DETAIL),
            Column("Written", ".status.written.at", "date", priority=DETAIL),
            Column("Message", _condition("Ready", "message"), priority=DETAIL),
            AGE,
        ),
        selectable=(".spec.delayTopic",),
    ),
)
