"""The election by a Lease: a pure decision over the document and what this operator saw of it before.

from delaytopic_operator.model.conditions import micro_time
Times of others are never compared with the own clock. How long a holder has been silent is measured by the own
monotonic clock, from the moment that its last renewal was *seen*; so clocks may differ by any amount, and only have to
run about equally fast. A write carries the resourceVersion that was read: of two who decide at once, one fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from delaytopic_operator.model.conditions import micro_time
from delaytopic_operator.model.kinds import LEASE

Document = dict[str, Any]

RETRIES_PER_LEASE: Final = 8
"""The number of times that a lease is renewed or looked at within its duration."""


class Step(Enum):
    """The next step about the Lease."""

    ACQUIRE = "Acquire"
    RENEW = "Renew"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True)
class Terms:
    """The Lease's durations, which follow from one."""

    duration_ms: int

    @property
    def retry_ms(self) -> int:
        """The time between looks, and between renewals."""
        return self.duration_ms // RETRIES_PER_LEASE

    @property
    def writable_ms(self) -> int:
        """Return how long after the *start* of a renewal that succeeded its holder may begin to write."""
        return self.duration_ms * 2 // 3


@dataclass(frozen=True, slots=True)
class Sighting:
    """A state of the Lease, and when (monotonic ms) it was seen for the first time."""

    record: tuple[object, ...]
    since_ms: int


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, what to remember for the next decision, and when (monotonic ms) to decide again."""

    step: Step
    sighting: Sighting | None
    again_at_ms: int


def decide(document: Document | None, before: Sighting | None, identity: str, terms: Terms, now_ms: int) -> Decision:
    """Decide what `identity` does about the Lease as just read (None: there is none), at monotonic time `now_ms`."""
    again_at_ms = now_ms + terms.retry_ms
    if document is None:
        return Decision(Step.ACQUIRE, None, again_at_ms)
    record = _record(document)
    sighting = before if before is not None and before.record == record else Sighting(record, now_ms)
    holder = document.get("spec", {}).get("holderIdentity")
    if holder == identity:
        return Decision(Step.RENEW, sighting, again_at_ms)
    ends_at_ms = sighting.since_ms + _duration_ms(document, terms)
    if not holder or ends_at_ms <= now_ms:
        return Decision(Step.ACQUIRE, sighting, again_at_ms)
    return Decision(Step.WAIT, sighting, min(again_at_ms, ends_at_ms))


def acquired(
    document: Document | None, namespace: str, name: str, identity: str, terms: Terms, wall_ms: int
) -> Document:
    """The Lease to write in order to lead; `document` as read, None to make one."""
    now = micro_time(wall_ms)
    spec = (document or {}).get("spec", {})
    transitions = spec.get("leaseTransitions", -1 if document is None else 0) + 1
    return _lease(document, namespace, name) | {
        "spec": spec
        | {
            "holderIdentity": identity,
            "leaseDurationSeconds": -(-terms.duration_ms // 1_000),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }
    }


def renewed(document: Document, wall_ms: int) -> Document:
    """The Lease to write in order to go on leading."""
    return document | {"spec": document["spec"] | {"renewTime": micro_time(wall_ms)}}


def released(document: Document, wall_ms: int) -> Document:
    """The Lease to write in order to let others lead at once."""
    spec = document["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(wall_ms)}
    return document | {"spec": spec}


def _record(document: Document) -> tuple[object, ...]:
    spec = document.get("spec", {})
    return (spec.get("holderIdentity"), spec.get("acquireTime"), spec.get("renewTime"), spec.get("leaseTransitions"))


def _duration_ms(document: Document, terms: Terms) -> int:
    """Return what its holder promised, who may have been configured otherwise."""
    seconds = document.get("spec", {}).get("leaseDurationSeconds")
    return int(seconds) * 1_000 if seconds else terms.duration_ms


def _lease(document: Document | None, namespace: str, name: str) -> Document:
    if document is not None:
        return document
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": {"namespace": namespace, "name": name}}
