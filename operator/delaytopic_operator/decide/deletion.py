"""The plan for a DelayTopic that is being deleted, and for the remains of one that is gone. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from delaytopic_api.documents import ConditionType
from delaytopic_api.values import DeletionPolicy
from delaytopic_operator.decide import relay_objects, revoked
from delaytopic_operator.decide.deletion_policy import GRACE_MS, Deletion, Going, Step, deadline_ms, next_step
from delaytopic_operator.decide.offsets import is_awaited, not_kept, restored, with_backup
from delaytopic_operator.decide.other_owner import harmless, other_owner
from delaytopic_operator.decide.plan import (
    FINALIZER,
    Action,
    Delete,
    ForgetRecord,
    Plan,
    Purge,
    RemoveFinalizer,
    WriteRecord,
)
from delaytopic_operator.decide.rules_in_force import rules_conditions, rules_of
from delaytopic_operator.decide.status_parts import parts_of
from delaytopic_operator.model.conditions import FALSE, TRUE, Condition, Progress, instant_ms
from delaytopic_operator.model.record import RecordState, RouteRecord, record_name
from delaytopic_operator.model.transitions import NORMAL, WARNING, Event
from delaytopic_operator.observe.observation import Observation, policy_of
from delaytopic_operator.rules.validate import RELAYS_OUT_OF_SIGHT, Accepted, Refusal
from delaytopic_operator.scaling.signals import fresh

CONFIRM = "delaytopic.dev/confirm-delete"
DEFAULT_DRAIN_MS = 900_000
OFFSETS_MS = 60_000
"""The time, beyond that for which Kafka or relays may be out of reach, that an object waits for the relays' offsets."""
_TENTHS = 10
_WARNED = ("BacklogRetained", "BacklogRemoved")


def needs_hold(policy: DeletionPolicy) -> bool:
    """Tell if the object has to be held until the policy was followed; Retain needs nothing of the kind."""
    return policy is not DeletionPolicy.RETAIN


def plan_deletion(seen: Observation) -> Plan:
    """Plan for a DelayTopic that is being deleted; nothing, once the operator does not hold it any more."""
    if FINALIZER not in (seen.route.metadata.get("finalizers") or ()):
        return Plan()
    if seen.route.record is None and not seen.route.objects:
        return Plan(actions=[RemoveFinalizer()])
    unseen = _relays_out_of_sight(seen)
    if unseen is not None:
        return unseen
    going = _going(seen)
    deletion = next_step(going, seen.now_ms)
    if deletion.step is Step.PURGE and (others := other_owner(seen)):
        return _left_to_others(seen, others)
    stalled = deletion.message if deletion.step is Step.CONFIRM else None
    return Plan(
        actions=_steps(seen, going, deletion),
        conditions=[
            Condition(ConditionType.DRAINING, TRUE, deletion.reason, deletion.message),
            *relay_objects.conditions(seen),
            *rules_conditions(seen),
        ],
        progress=Progress(stalled=stalled, stalled_reason=deletion.reason, reconciling=_reconciling(deletion)),
        parts=parts_of(seen, None),
        events=_events(seen, going, deletion),
        next_at_ms=seen.now_ms + min(seen.config.poll.ms, 5_000),
    )


def _left_to_others(seen: Observation, others: Sequence[Condition]) -> Plan:
    """Hold an object whose topics and offsets relays of another Kubernetes cluster use; those of this one end."""
    message = f"nothing is removed from Kafka: {others[0].message}"
    return Plan(
        actions=_removals(seen),
        conditions=[Condition(ConditionType.DRAINING, TRUE, others[0].reason, message), *others],
        progress=Progress(stalled=message, stalled_reason=others[0].reason),
        parts=parts_of(seen, None),
        next_at_ms=seen.now_ms + seen.config.poll.ms,
    )


def _relays_out_of_sight(seen: Observation) -> Plan | None:
    """Hold the object while relays of it may run where the operator looks no longer: nobody would stop them."""
    refusal = seen.route.verdict
    if not isinstance(refusal, Refusal) or refusal.reason != RELAYS_OUT_OF_SIGHT or seen.route.goes_with_namespace:
        return None
    return Plan(
        conditions=[Condition(ConditionType.POLICY_ACCEPTED, FALSE, refusal.reason, refusal.message)],
        progress=Progress(stalled=refusal.message, stalled_reason=refusal.reason),
        parts=parts_of(seen, None),
        next_at_ms=seen.now_ms + seen.config.resync.ms,
    )


def plan_orphans(seen: Observation) -> Plan:
    """Plan for objects and backlog of a DelayTopic that is gone: a drain goes on, all else is retained."""
    record = seen.route.record
    if seen.route.record_problem is not None or (record is not None and record.key != seen.key):
        return Plan()
    if record is None:
        return Plan(actions=_removals(seen))
    if record.state is not RecordState.DRAINING:
        return _ended(seen, record)
    deletion = next_step(_of_record(seen, record), seen.now_ms)
    if not deletion.ends:
        return Plan(next_at_ms=seen.now_ms + min(seen.config.poll.ms, 5_000))
    return _ended(seen, record)


def _ended(seen: Observation, record: RouteRecord) -> Plan:
    """Retain everything; once the last relay is gone, their offsets are read in a reconciliation of its own."""
    awaited = bool(_removals(seen) or seen.fleet.pods) or (seen.committed is not None and is_awaited(seen))
    return Plan(
        actions=[*_kept(seen, record, _pending(seen)), *_removals(seen)],
        events=not_kept(seen),
        next_at_ms=seen.now_ms + min(seen.config.poll.ms, 5_000) if awaited else None,
    )


def _going(seen: Observation) -> Going:
    accepted, spec = seen.route.accepted, (seen.route.document or {}).get("spec") or {}
    timeout_ms = accepted.settings.drain_timeout.ms if accepted is not None else DEFAULT_DRAIN_MS
    return Going(
        policy=policy_of(seen),
        deleted_ms=instant_ms(str(seen.route.metadata["deletionTimestamp"])),
        drain_timeout_ms=timeout_ms,
        namespace_terminates=seen.route.namespace is None or seen.route.namespace.terminates,
        with_namespace=bool(spec.get("connection")),
        confirmed=seen.route.annotations.get(CONFIRM) == seen.key.name,
        has_relays=_has_relays(seen),
        stoppable=seen.fleet.deployment is not None or bool(seen.fleet.pods),
        pending=_pending(seen),
        at_first=_at_first(seen.route.record),
        retained=seen.route.record is not None and seen.route.record.state is RecordState.RETAINED,
        unreachable_since_ms=seen.route.unreachable_since_ms,
    )


def _has_relays(seen: Observation) -> bool:
    """Tell if there are relays, or were when last seen: a deletion in the foreground takes them away first."""
    return seen.fleet.deployment is not None or bool(seen.route.status.get("relay"))


def _of_record(seen: Observation, record: RouteRecord) -> Going:
    since_ms = record.drain_since_ms if record.drain_since_ms is not None else seen.now_ms
    until_ms = record.drain_until_ms if record.drain_until_ms is not None else seen.now_ms
    return Going(
        policy=DeletionPolicy.DRAIN,
        deleted_ms=since_ms,
        drain_timeout_ms=until_ms - since_ms,
        namespace_terminates=False,
        with_namespace=False,
        confirmed=False,
        has_relays=seen.fleet.deployment is not None,
        stoppable=seen.fleet.deployment is not None or bool(seen.fleet.pods),
        pending=_pending(seen),
        at_first=_at_first(record),
        retained=False,
        unreachable_since_ms=seen.route.unreachable_since_ms,
    )


def _steps(seen: Observation, going: Going, deletion: Deletion) -> list[Action]:
    accepted, record = seen.route.accepted, seen.route.record
    released: list[Action]
    match deletion.step:
        case Step.DRAIN | Step.HAND_OVER:
            released = [RemoveFinalizer()] if deletion.step is Step.HAND_OVER else []
            return [*_draining(seen, going, record), *_drained(seen, accepted), *released]
        case Step.FINISH | Step.RETAIN:
            released = [] if _waits(seen, going) else [RemoveFinalizer()]
            return [*_kept(seen, record, going.pending), *_removals(seen), *released]
        case Step.CONFIRM:
            return []
        case Step.STOP:
            return [*_kept(seen, record, going.pending), *_removals(seen)]
        case Step.PURGE:
            forgotten = ForgetRecord(record_name(seen.key))
            purged: list[Action] = [Purge(record, topics=True), forgotten] if record is not None else []
            return [*purged, *_removals(seen), RemoveFinalizer()]


def _draining(seen: Observation, going: Going, record: RouteRecord | None) -> list[Action]:
    if record is None:
        return []
    if seen.route.accepted is not None:
        record = record.model_copy(update={"rules": rules_of(seen, seen.route.accepted)})
    if record.state is RecordState.DRAINING:
        return [WriteRecord(record, seen.fleet.saved_memory)] if record != seen.route.record else []
    draining = record.draining(
        going.deleted_ms,
        deadline_ms(going),
        pending=going.pending,
        source_partitions=seen.fleet.partitions,
    )
    return [WriteRecord(draining, seen.fleet.saved_memory)]


def _drained(seen: Observation, accepted: Accepted | None) -> list[Action]:
    """List what lets relays drain; without settings (the class is gone, say) they go on as they are, or are stopped."""
    if accepted is None:
        return revoked.stops(seen)
    if seen.route.secrets_problem is not None or not _has_relays(seen):
        return []
    changes = relay_objects.draining(seen, accepted)
    before = restored(seen, seen.route.record, changes) if seen.route.record is not None else []
    return harmless(seen, [*before, *changes])


def _waits(seen: Observation, going: Going) -> bool:
    """Tell if the object stays until its relays are gone and their offsets are written down; not for ever."""
    since_ms = going.unreachable_since_ms
    late = since_ms is not None and seen.now_ms - since_ms >= GRACE_MS + OFFSETS_MS
    return not late and seen.route.record is not None and (going.stoppable or is_awaited(seen))


def _kept(seen: Observation, record: RouteRecord | None, pending: int | None) -> list[Action]:
    """Write down a retained backlog. It is counted once: after a kill in between there are no relays to count."""
    if record is None:
        return []
    retained = with_backup(record, seen)
    if record.state is not RecordState.RETAINED:
        count = pending if pending is not None else _at_first(record)
        retained = retained.in_state(RecordState.RETAINED, pending=count)
    return [WriteRecord(retained, None)] if retained != record else []


def _at_first(record: RouteRecord | None) -> int | None:
    return record.pending if record is not None and record.state is RecordState.DRAINING else None


def _removals(seen: Observation) -> list[Action]:
    return [Delete(document) for document in seen.route.objects if document["kind"] in relay_objects.KINDS]


def _pending(seen: Observation) -> int | None:
    """Return the number of pending records; None unless every source partition is accounted for."""
    record = seen.route.record
    if seen.fleet.deployment is None and record is not None and record.state is RecordState.RETAINED:
        return record.pending
    if seen.fleet.signals is not None and seen.fleet.signals.complete:
        return fresh(seen.fleet.signals.pending, seen.now_ms)
    if seen.fleet.deployment is not None and seen.fleet.desired == 0:
        if _is_unused(seen):
            return 0
        if seen.fleet.saved_memory is not None:
            backlog = seen.fleet.saved_memory.backlog
            return backlog.pending if backlog is not None and backlog.pending == 0 else None
    return seen.fleet.pending


def _is_unused(seen: Observation) -> bool:
    """Tell if nothing was ever written to the source: no relay has to start to learn that nothing is pending.

    A source that was made anew is another one: records of the former may be in the backlog.
    """
    source = seen.route.record.source if seen.route.record is not None else None
    if source is None or seen.fleet.signals is None or seen.topics is None:
        return False
    facts = seen.topics.view.topics.get(source.name)
    end = fresh(seen.fleet.signals.source_end, seen.now_ms)
    return facts is not None and facts.topic_id == source.topic_id and end == 0


def _reconciling(deletion: Deletion) -> str | None:
    return None if deletion.step is Step.CONFIRM else deletion.message


def _events(seen: Observation, going: Going, deletion: Deletion) -> list[Event]:
    if deletion.step in (Step.FINISH, Step.RETAIN) and _waits(seen, going):
        return []  # the last reconciliation tells it: until then the condition does
    if deletion.ends and deletion.step is not Step.HAND_OVER:
        kind = WARNING if deletion.reason in _WARNED else NORMAL
        return [Event(kind, deletion.reason, deletion.message), *not_kept(seen)]
    return list(_drain_progress(seen, going))


def _drain_progress(seen: Observation, going: Going) -> Sequence[Event]:
    """Tell of each tenth of what was pending at first."""
    first = seen.route.record.pending if seen.route.record is not None else None
    before = (seen.route.status.get("backlog") or {}).get("pending")
    if not first or going.pending is None or before is None:
        return []
    # As the status counts: without what was cancelled or replaced.
    left = max(0, going.pending - seen.fleet.withdrawn)
    done, was = (_TENTHS * (first - count) // first for count in (left, int(before)))
    if done <= was:
        return []
    return [Event(NORMAL, "DrainProgress", f"{left} of {first} pending records are left")]
