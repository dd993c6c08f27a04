"""The CronJobs of audits: which objects to write or remove. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from delaytopic_api import DelayClass, DelayTopic
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.drift import drift
from delaytopic_operator.decide.plan import Apply, Delete
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.observation import address_of
from delaytopic_operator.resources import audit_objects


@dataclass(frozen=True)
class AuditObservation:
    """One look at the audit of a DelayClass, or of the DelayTopics of a namespace that have no class."""

    key: Key
    now_ms: int
    config: OperatorConfig
    is_known: bool = False
    """False while it is not known what is wanted: the class cannot be used, or is gone."""
    of_class: DelayClass | None = None
    """The class; None for a namespace."""
    topics: Sequence[DelayTopic] = ()
    """The DelayTopics that were accepted as they are now: what the audit is about."""
    waits_for: frozenset[Key] = frozenset()
    """The others, which may be accepted at any moment."""
    runs: bool = False
    """True while a pod of it runs, which has verdicts or will have them."""
    objects: Sequence[dict[str, Any]] = ()
    """The objects that the operator made for it, without pods."""


@dataclass(frozen=True)
class AuditPlan:
    """The outcome of one look at one audit."""

    actions: tuple[Apply | Delete, ...] = ()
    next_at_ms: int | None = None


def plan_audit(seen: AuditObservation) -> AuditPlan:
    """Decide what to write of an audit now; nothing while it is not known what is wanted."""
    if not seen.is_known:
        return AuditPlan()
    wanted = audit_objects(seen.key, seen.of_class, seen.topics, seen.config)
    there = {address_of(document): document for document in seen.objects}
    found: list[Apply | Delete] = []
    for document in wanted:
        live = there.pop(address_of(document), None)
        differences = drift(document, live) if live is not None else []
        if live is None or differences:
            found.append(Apply(document, differences, exists=live is not None))
    return AuditPlan((*found, *map(Delete, there.values())), _next_look_ms(seen))


def _next_look_ms(seen: AuditObservation) -> int | None:
    """Return the next poll while something is about to happen that is no event; else the next resync is enough.

    An operator hears nothing of what it writes itself, and whether a DelayTopic is accepted, it writes.
    """
    return seen.now_ms + seen.config.poll.ms if seen.runs or seen.waits_for else None
