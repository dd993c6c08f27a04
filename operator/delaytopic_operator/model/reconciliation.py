"""The seam of a reconciliation: its key, and everything that is done about one object."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Key(NamedTuple):
    """A DelayTopic, by name; a DelayClass has no namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def class_key(name: str) -> Key:
    """Return the key of a DelayClass."""
    return Key("", name)


def audit_key(namespace: str, of_class: str | None) -> Key:
    """Return the key of the audit that a DelayTopic of the namespace is part of.

    It is its class's; or, without a class, the one of all DelayTopics of its namespace with connections of their own.
    """
    return class_key(of_class) if of_class is not None else Key(namespace, "")


@dataclass(frozen=True, slots=True)
class Result:
    """A reconciliation that went well; `next_at_ms` (epoch ms): look again then, whether something happens or not."""

    next_at_ms: int | None = None
    cluster: str | None = None
    """The Kafka cluster that the look was about, by its bootstrap servers; None where it was about none."""
    others: Collection[Key] = ()
    """The other DelayTopics to look at now: what they wait for is there."""
    early_ms: int = 0
    """The time by which it may be looked at again before `next_at_ms`, by whoever is at work just then."""


class Reconciler(Protocol):
    """Does the reconciliations, many at once in threads, never two for one key."""

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        """One reconciliation, which was asked for `asked_for_ms`; raises `OperatorError` to be tried again, later each
        time.
        """

    def keys(self) -> Iterable[Key]:
        """Everything there is to look at, also what remains of DelayTopics that are gone."""
