"""Relays whose class no longer allows what they do: what is said, and how they stop where the class says so. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from delaytopic_api.documents import ConditionType
from delaytopic_operator.decide.offsets import with_backup
from delaytopic_operator.decide.plan import Action, StopRelays, WriteRecord
from delaytopic_operator.model.conditions import FALSE, Condition
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.rules.revoked import Revoked
from delaytopic_operator.rules.validate import Refusal

REASON: Final = "AccessRevoked"
_OF_ACCESS: Final = ("NamespaceNotAllowed", "SourceNotAllowed", "TargetNotAllowed")
"""Refusals that say the same of the DelayTopic as is said of its relays."""


def told(seen: Observation, refusal: Refusal) -> Refusal:
    """Return the refusal with what it means for relays that run; the same where their right is as it was."""
    gone = seen.route.revoked
    if gone is None or seen.fleet.deployment is None:
        return refusal
    besides = "" if refusal.reason in _OF_ACCESS else f" Besides, the DelayTopic is refused: {refusal.message}."
    message = (
        f"DelayClass {gone.class_name} ({gone.fields}) no longer allows what the relays do: "
        f"{'; '.join(map(str, gone.problems))}. {_fate(gone)} Ask who looks after the class to allow it again, or "
        f"delete the DelayTopic; nothing has to be tried again.{besides}"
    )
    return Refusal(REASON, message)


def stopped(seen: Observation) -> Condition | None:
    """Return RelayAvailable of relays that stop, or have, as their class says so; None for all others."""
    gone = seen.route.revoked
    if gone is None or not seen.route.is_suspended or seen.fleet.deployment is None:
        return None
    message = f"DelayClass {gone.class_name} ({gone.fields}) no longer allows what the relays do. {_fate(gone)}"
    return Condition(ConditionType.RELAY_AVAILABLE, FALSE, REASON, message)


def stops(seen: Observation) -> list[Action]:
    """List what ends relays, where their class says so; nothing else is touched."""
    if not seen.route.is_suspended:
        return []
    return [StopRelays(dict(seen.fleet.deployment))] if seen.fleet.deployment and seen.fleet.desired > 0 else []


def written_down(seen: Observation) -> list[Action]:
    """Write down the relays' offsets, which Kafka forgets in time, and that their number is nobody's decision."""
    if not seen.route.is_suspended or seen.route.record is None:
        return []
    record, saved = with_backup(seen.route.record, seen), seen.fleet.saved_memory
    # Of what is pending nobody knows anything when relays go on.
    memory = replace(saved, replicas=None, backlog=None) if saved is not None else None
    return [WriteRecord(record, memory)] if (record, memory) != (seen.route.record, saved) else []


def _fate(gone: Revoked) -> str:
    if gone.suspends:
        return (
            "They are scaled to zero, as access.onRevoked is Suspend: topics, offsets and backlog stay, and they go on "
            "by themselves once it is allowed."
        )
    return "They run on with the class's login, as access.onRevoked is Keep."
