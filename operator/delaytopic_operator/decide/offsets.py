"""The relays' committed offsets, which Kafka forgets while there are none: backed up, restored, reported. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from delaytopic_api.documents import ConditionType
from delaytopic_api.values import Duration
from delaytopic_operator.decide.plan import Action, Apply, RestoreOffsets
from delaytopic_operator.model.conditions import TRUE, Condition, instant
from delaytopic_operator.model.offsets_backup import forgotten, updated
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.model.transitions import WARNING, Event
from delaytopic_operator.observe.observation import Observation

NEWS_MS: Final = 24 * 3_600_000
"""The time for which the status tells of records that come again."""
SHORT_MS: Final = 24 * 3_600_000
"""Brokers that forget sooner do so before anybody has looked at what is wrong with relays."""


def with_backup(record: RouteRecord, seen: Observation) -> RouteRecord:
    """Return the record with what was read of the relays' committed offsets."""
    backup = updated(record.offsets, seen.committed.read if seen.committed is not None else None, seen.now_ms)
    return record if backup == record.offsets else record.model_copy(update={"offsets": backup})


def restored(seen: Observation, record: RouteRecord, changes: Iterable[Action]) -> list[Action]:
    """Restore the backup before relays begin, or while they cannot and Kafka is seen to have forgotten."""
    kept = record.offsets
    if kept is None or record.source is None or record.source.topic_id != kept.topic_id:
        return []
    lost = seen.committed is not None and seen.fleet.desired > 0 and forgotten(kept, seen.committed.read)
    return [RestoreOffsets(record.group_id, kept)] if lost or _begin(seen, changes) else []


def outdated(seen: Observation) -> Condition | None:
    """Return BackendReady for a day after offsets had to be restored that were older than what relays had delivered."""
    found = seen.route.record.outdated if seen.route.record is not None else None
    if found is None or seen.now_ms - found.restored_ms >= NEWS_MS:
        return None
    since = instant(found.since_ms)
    message = (
        f"Kafka had forgotten what relays have delivered, and what was backed up is of {since}: records delivered "
        f"since {since} come again; raise offsets.retention.minutes where operator and relays may be away for long"
    )
    return Condition(ConditionType.BACKEND_READY, TRUE, "OffsetsOutdated", message)


def is_awaited(seen: Observation) -> bool:
    """Tell if an object that goes waits until the relays' offsets are read: after the last of them has gone."""
    record = seen.route.record
    if record is None or record.source is None or record.source.topic_id is None:
        return False
    if seen.committed is None:
        return True
    return seen.committed.problem is not None and seen.committed.problem.passing


def not_kept(seen: Observation) -> list[Event]:
    """Warn where the offsets of a route without relays could not be read."""
    if seen.committed is None or seen.committed.problem is None:
        return []
    note = (
        f"the offsets of the relays of {seen.key} could not be backed up: {seen.committed.problem.message}. "
        "Kafka forgets them some time after the relays have gone (offsets.retention.minutes, a week by default); "
        "relays that start later than that deliver everything again that the source still holds"
    )
    return [Event(WARNING, "OffsetsNotBackedUp", note)]


def retention_advice(seen: Observation) -> str | None:
    """Advise where brokers forget offsets soon."""
    kept_ms = seen.topics.offsets_retention_ms if seen.topics is not None else None
    if kept_ms is None or kept_ms >= SHORT_MS:
        return None
    return (
        f"the brokers forget what relays have delivered {Duration.of_ms(kept_ms)} after the last of them has gone, and "
        "relays that come back later without the operator deliver it again: set offsets.retention.minutes to 10080"
    )


def _begin(seen: Observation, changes: Iterable[Action]) -> bool:
    """Tell if relays begin to run with these changes."""
    if seen.fleet.desired > 0:
        return False
    deployments = (one.document for one in changes if isinstance(one, Apply) and one.document["kind"] == "Deployment")
    return any(document["spec"].get("replicas", 1) > 0 for document in deployments)
