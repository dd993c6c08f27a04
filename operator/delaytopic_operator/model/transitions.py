"""The transitions of conditions that become events: never a state that stays, and never one per message. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from delaytopic_api.documents import ConditionType

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Event(NamedTuple):
    """Something that happened to an object that people write."""

    type: str
    """Normal or Warning."""
    reason: str
    message: str


class _Rule(NamedTuple):
    type: ConditionType
    status: str | None
    """The new status; None: the condition is gone."""
    event: str
    reason: str | None
    """The reason of the event; None: that of the condition."""
    at_first: bool = True
    """True if it is told when nothing was known of it before."""
    only: tuple[str, ...] = ()
    """Reasons of the condition; none: it is told of any."""


_RULES: Final = (
    _Rule(ConditionType.READY, "True", NORMAL, "Ready"),
    _Rule(ConditionType.READY, "False", WARNING, "NotReady", at_first=False),
    _Rule(ConditionType.READY, "Unknown", WARNING, "NotReady", at_first=False),
    _Rule(ConditionType.STALLED, "True", WARNING, None),
    _Rule(ConditionType.CAPACITY_SUFFICIENT, "False", WARNING, "CapacityInsufficient"),
    _Rule(ConditionType.CAPACITY_SUFFICIENT, "True", NORMAL, "CapacitySufficient", at_first=False),
    _Rule(ConditionType.DELIVERING_ON_TIME, "False", WARNING, "Overdue"),
    _Rule(ConditionType.DELIVERING_ON_TIME, "True", NORMAL, "DeliveringOnTime", at_first=False),
    _Rule(ConditionType.SLO_MET, "False", WARNING, "SLOMissed"),
    _Rule(ConditionType.SLO_MET, "True", NORMAL, "SLOMet", at_first=False),
    _Rule(ConditionType.BACKEND_READY, "False", WARNING, None, at_first=False),
    _Rule(ConditionType.PAUSED, "True", NORMAL, "Paused"),
    _Rule(ConditionType.PAUSED, None, NORMAL, "Resumed"),
    _Rule(ConditionType.ACCEPTED, "False", WARNING, None),
    _Rule(ConditionType.ACCEPTED, "Unknown", WARNING, None, at_first=False),
    _Rule(ConditionType.ACCEPTED, "True", NORMAL, "Accepted", at_first=False),
    _Rule(ConditionType.DELETION_BLOCKED, "True", WARNING, "DeletionBlocked"),
    _Rule(ConditionType.RULES_IN_FORCE, "False", WARNING, None, only=("EditWaits",)),
    _Rule(ConditionType.RULES_IN_FORCE, "True", NORMAL, None, at_first=False),
    _Rule(ConditionType.SOURCE_HELD_BACK, "True", WARNING, "SourceHeldBack"),
    _Rule(ConditionType.SOURCE_HELD_BACK, None, NORMAL, "SourceReadable"),
    _Rule(ConditionType.DRAINING, "True", NORMAL, "DrainStarted", only=("Draining", "DrainTimeoutNear")),
)
_HELD: Final = ("SignalStale",)
_IN_A_MOMENT: Final = ("Writing", "Waiting", "DelayTopicNotReady")


def transition_events(previous: Iterable[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events for what changed between the conditions of the reconciliation before and of this one."""
    before = {str(condition.get("type")): condition for condition in previous}
    after = {str(condition["type"]): condition for condition in now}
    return [
        *(event for rule in _RULES if (event := _event(rule, before, after)) is not None),
        *_scaling_held(before.get("AutoscalingActive"), after.get("AutoscalingActive")),
    ]


def reason_events(previous: Iterable[Mapping[str, Any]], now: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Return the event for another reason of Ready, of a kind whose reasons tell people what to do; none for one that
    passes in a moment.
    """
    before, after = (
        next((each for each in conditions if each["type"] == ConditionType.READY), None)
        for conditions in (previous, now)
    )
    if after is None or after["reason"] in _IN_A_MOMENT or (before or {}).get("reason") == after["reason"]:
        return []
    is_wanted = after["status"] == "True" or after["reason"] == "Suspended"
    return [Event(NORMAL if is_wanted else WARNING, after["reason"], after.get("message", ""))]


def _event(
    rule: _Rule, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Event | None:
    old, new = before.get(rule.type), after.get(rule.type)
    if rule.status is None:
        gone = old is not None and new is None
        return Event(rule.event, str(rule.reason), f"{rule.type} no longer") if gone else None
    if new is None or new["status"] != rule.status or (not rule.at_first and not _was_known(old)):
        return None
    if (rule.only and new["reason"] not in rule.only) or _is_asked_for(new):
        return None
    if old is not None and (old["status"], old["reason"]) == (new["status"], new["reason"]):
        return None
    if old is not None and old["status"] == new["status"] and rule.reason is not None:
        return None
    return Event(rule.event, rule.reason or str(new["reason"]), str(new.get("message", "")))


def _is_asked_for(condition: Mapping[str, Any]) -> bool:
    """An object that is being deleted is not ready, and nobody needs a warning."""
    return bool(condition["type"] == ConditionType.READY and condition["reason"] == "Draining")


def _was_known(old: Mapping[str, Any] | None) -> bool:
    """Return whether an object was known: at the start, what is learned for the first time is no news."""
    return old is not None and old["status"] != "Unknown"


def _scaling_held(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterable[Event]:
    if new is None or new["reason"] not in _HELD or not _was_known(old) or (old or {})["reason"] == new["reason"]:
        return
    yield Event(WARNING, "ScaleHeld", str(new.get("message", "")))
