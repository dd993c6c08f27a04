"""The outcome of a plan. Pure data, with its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from delaytopic_operator.model.reconciliation import Key


class Judgement(StrEnum):
    """The outcome for a DelayTopic, in a word."""

    NOTHING = "NothingToDo"
    CHANGES = "Changes"
    REFUSED = "Refused"


EXIT_CODES = {Judgement.NOTHING: 0, Judgement.CHANGES: 2, Judgement.REFUSED: 3}


@dataclass(frozen=True, slots=True)
class InForce:
    """A setting, and where it comes from."""

    field: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Change:
    """One field of an object that is there: `before` and `after` are None where they are no short text."""

    path: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that would be done."""

    action: str
    object: str
    detail: str | None = None
    changes: Sequence[Change] = ()
    restarts: bool = False
    """True when relays start anew by it."""
    document: dict[str, Any] | None = None
    """The document that would be written."""

    def to_json(self, *, documents: bool) -> dict[str, Any]:
        """Return the document without absent parts."""
        parts = {
            "action": self.action,
            "object": self.object,
            "detail": self.detail,
            "changes": [{"path": each.path, "before": each.before, "after": each.after} for each in self.changes],
            "restartsRelays": self.restarts,
            "document": self.document if documents else None,
        }
        return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """The outcome for one DelayTopic. `reason` and `message` tell why it is refused, or another remark."""

    key: Key
    judgement: Judgement
    reason: str | None = None
    message: str | None = None
    in_force: Sequence[InForce] = ()
    steps: Sequence[Step] = ()
    relays: str | None = None
    notes: Sequence[str] = ()
    in_files: bool = True
    """False: it is one of the cluster's, which a class of the files concerns."""

    def to_json(self, *, documents: bool) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "inFiles": self.in_files,
            "judgement": str(self.judgement),
            "reason": self.reason,
            "message": self.message,
            "relays": self.relays,
            "inForce": [{"field": each.field, "value": each.value, "from": each.origin} for each in self.in_force],
            "steps": [step.to_json(documents=documents) for step in self.steps],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class RecurringOutcome:
    """The outcome for one RecurringRecord. `reason` and `message` tell why it is refused, or why it rests."""

    key: Key
    judgement: Judgement
    reason: str | None = None
    message: str | None = None
    steps: Sequence[Step] = ()
    next: Sequence[str] = ()
    """The next times by its rule, without jitter."""
    notes: Sequence[str] = ()
    in_files: bool = True
    """False: it is one of the cluster's, whose DelayTopic the files concern."""

    def to_json(self, *, documents: bool) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "inFiles": self.in_files,
            "judgement": str(self.judgement),
            "reason": self.reason,
            "message": self.message,
            "steps": [step.to_json(documents=documents) for step in self.steps],
            "next": list(self.next),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for all documents."""

    against: str
    """The side of comparison: a cluster, or nothing."""
    steps: Sequence[Step]
    """The steps about classes and namespaces."""
    topics: Sequence[TopicOutcome]
    recurring: Sequence[RecurringOutcome] = ()
    notes: Sequence[str] = ()
    """Parts of the cluster that could not be read."""
    assumptions: Sequence[str] = ()
    """Parts that are never read."""

    @property
    def judgements(self) -> list[Judgement]:
        """The judgements of all objects."""
        return [*(each.judgement for each in self.topics), *(each.judgement for each in self.recurring)]

    @property
    def judgement(self) -> Judgement:
        """The gravest."""
        judged = {*self.judgements}
        if Judgement.REFUSED in judged:
            return Judgement.REFUSED
        return Judgement.CHANGES if self.steps or Judgement.CHANGES in judged else Judgement.NOTHING

    def to_json(self, *, documents: bool) -> dict[str, Any]:
        """Return the document that `-o json` prints."""
        return {
            "judgement": str(self.judgement),
            "against": self.against,
            "steps": [step.to_json(documents=documents) for step in self.steps],
            "delayTopics": [topic.to_json(documents=documents) for topic in self.topics],
            "recurringRecords": [each.to_json(documents=documents) for each in self.recurring],
            "notes": list(self.notes),
            "assumptions": list(self.assumptions),
        }
