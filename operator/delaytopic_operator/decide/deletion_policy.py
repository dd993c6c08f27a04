"""The next step for a DelayTopic that is being deleted, and for its pending records. Pure.

policy   what is so                                  step
Drain    something pending, before the deadline      DRAIN     relays deliver, take nothing in
Drain    nothing pending                             FINISH    relays go, topics stay
Drain    it was written down that everything stays   RETAIN    what was begun is ended
Drain    deadline passed, or cut off for 10 minutes  RETAIN    relays go, everything pending stays where it is
Drain    the namespace goes, relays live elsewhere   HAND_OVER the object goes at once, its relays drain on
Drain    the namespace goes, and the relays with it  RETAIN
Retain                                               RETAIN
Delete   the annotation confirm-delete is missing    CONFIRM   the object waits
Delete   the namespace goes                          RETAIN
Delete   confirmed, relays still there               STOP
Delete   confirmed, relays gone                      PURGE     backlog, offsets and owned topics go, the target never
Delete   confirmed, cut off for 10 minutes           RETAIN
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.model.conditions import instant

GRACE_MS: Final = 600_000
"""The time out of reach of Kafka, Redis or relays, after which the object is let go, with everything kept."""
NOTICE_MS: Final = 120_000
"""The time before the deadline of a drain at which the condition says so."""


class Step(StrEnum):
    """A step of a deletion."""

    DRAIN = "Drain"
    FINISH = "Finish"
    RETAIN = "Retain"
    HAND_OVER = "HandOver"
    CONFIRM = "Confirm"
    STOP = "Stop"
    PURGE = "Purge"


@dataclass(frozen=True)
class Going:
    """A DelayTopic that is being deleted, as far as the next step depends on it."""

    policy: DeletionPolicy
    deleted_ms: int
    """The time at which it was asked for."""
    drain_timeout_ms: int
    namespace_terminates: bool
    with_namespace: bool
    """True if its relays live in the namespace of the object."""
    confirmed: bool
    """True if the annotation confirm-delete names the object."""
    has_relays: bool
    """True if there is a Deployment that could deliver."""
    stoppable: bool
    """True if there is a Deployment or a pod: what they still write would not be removed."""
    pending: int | None
    """Taken in and not yet delivered; None while the relays cannot say."""
    at_first: int | None
    """The number when the drain began; None when it did not, or that was not known."""
    retained: bool
    """True if it was written down already that everything pending stays where it is."""
    unreachable_since_ms: int | None
    """Since when Kafka, the backlog or the relays cannot be reached."""


@dataclass(frozen=True)
class Deletion:
    """The step, a word for programs, and a sentence for people."""

    step: Step
    reason: str
    message: str

    @property
    def ends(self) -> bool:
        """True if the object may go after this step."""
        return self.step in (Step.FINISH, Step.RETAIN, Step.HAND_OVER, Step.PURGE)


def next_step(going: Going, now_ms: int) -> Deletion:
    """Return the step to take now."""
    if going.policy is DeletionPolicy.RETAIN:
        return Deletion(Step.RETAIN, "BacklogRetained", f"{_count(going)} stay until the same object is applied again")
    if going.policy is DeletionPolicy.DRAIN:
        return _drain(going, now_ms)
    return _delete(going, now_ms)


def deadline_ms(going: Going) -> int:
    """Return the latest end of a drain."""
    return going.deleted_ms + going.drain_timeout_ms


def _drain(going: Going, now_ms: int) -> Deletion:
    if going.pending == 0:
        return Deletion(Step.FINISH, "DrainCompleted", "everything pending was delivered at its own time")
    if going.retained:
        return Deletion(Step.RETAIN, "BacklogRetained", f"{_count(going)} stay until the same object is applied again")
    if not going.has_relays:
        return Deletion(Step.RETAIN, "BacklogRetained", f"there are no relays to deliver: {_count(going)} stay")
    if going.namespace_terminates and going.with_namespace:
        message = f"the namespace goes, and the relays with it: {_count(going)} stay"
        return Deletion(Step.RETAIN, "BacklogRetained", message)
    if now_ms >= deadline_ms(going):
        return Deletion(Step.RETAIN, "BacklogRetained", f"drainTimeout is over: {_count(going)} stay")
    if _unreachable(going, now_ms):
        return Deletion(Step.RETAIN, "BacklogRetained", f"cut off for ten minutes: {_count(going)} stay")
    if going.namespace_terminates:
        message = f"the namespace goes; the relays live elsewhere and deliver {_count(going)}"
        return Deletion(Step.HAND_OVER, "Draining", message)
    left_s = (deadline_ms(going) - now_ms) // 1_000
    reason = "DrainTimeoutNear" if left_s * 1_000 <= NOTICE_MS else "Draining"
    return Deletion(
        Step.DRAIN,
        reason,
        f"{_count(going)} leave at their own time, until {instant(deadline_ms(going))} at the latest",
    )


def _delete(going: Going, now_ms: int) -> Deletion:
    if going.namespace_terminates:
        return Deletion(Step.RETAIN, "BacklogRetained", f"the namespace goes: {_count(going)} stay")
    if not going.confirmed:
        message = (
            f"deletionPolicy Delete removes {_count(going)}: confirm with the annotation "
            "delaytopic.dev/confirm-delete, whose value is the object's name, or set deletionPolicy to Retain"
        )
        return Deletion(Step.CONFIRM, "ConfirmationMissing", message)
    if _unreachable(going, now_ms):
        return Deletion(Step.RETAIN, "BacklogRetained", f"cut off for ten minutes: {_count(going)} stay")
    if going.stoppable:
        return Deletion(Step.STOP, "Stopping", f"the relays stop before {_count(going)} are removed")
    return Deletion(Step.PURGE, "BacklogRemoved", f"{_count(going)} are removed")


def _unreachable(going: Going, now_ms: int) -> bool:
    return going.unreachable_since_ms is not None and now_ms - going.unreachable_since_ms >= GRACE_MS


def _count(going: Going) -> str:
    if going.pending is not None:
        return f"{going.pending} pending records"
    if going.at_first is not None:
        return f"at most {going.at_first} pending records"
    return "pending records (unknown how many)"
