"""A backlog that a former DelayTopic of the same name left behind: resumed, discarded, or somebody else's. Pure."""

from __future__ import annotations

from delaytopic_api.documents import ConditionType
from delaytopic_operator.decide import relay_objects
from delaytopic_operator.decide.deletion import plan_orphans
from delaytopic_operator.decide.plan import Plan, Purge, WriteRecord
from delaytopic_operator.decide.status_parts import parts_of
from delaytopic_operator.model.conditions import FALSE, TRUE, Condition, Progress, instant_ms
from delaytopic_operator.model.record import RecordState, RouteRecord, refusal_to_resume
from delaytopic_operator.model.transitions import WARNING, Event
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.scaling.decision import Decision

DISCARD = "delaytopic.dev/discard-retained"
NEWS_MS = 3_600_000
"""The longest time for which the status tells of a resumed backlog."""


def foreign_or_discarded(seen: Observation, accepted: Condition, decision: Decision | None) -> Plan | None:
    """Plan for a backlog that is not this object's to resume, or that is to be discarded; None: neither.

    What the former object left running is brought to its end first, as if there were no new one.
    """
    assert seen.route.accepted is not None
    assert seen.route.namespace is not None
    record = seen.route.record
    if record is None:
        return None
    refusal = refusal_to_resume(record, seen.route.accepted.settings, seen.route.namespace.uid)
    discarded = seen.route.annotations.get(DISCARD) == record.backend_id and record.pending != 0
    if refusal is not None and not (discarded and record.state is RecordState.RETAINED):
        return _foreign(seen, accepted, refusal, decision)
    if discarded and record.state is RecordState.RETAINED:
        return _discarding(seen, accepted, record)
    return None


def is_resumed(seen: Observation) -> bool:
    """Tell if there is a backlog from before a deletion, not yet delivered as far as is known."""
    record = seen.route.record
    if record is None or record.pending == 0:
        return False
    if record.state is not RecordState.ACTIVE:
        return True
    return record.pending is not None and seen.fleet.pending != 0 and not _is_old_news(seen)


def resumed_condition(seen: Observation) -> Condition:
    """Name the number of records that go on."""
    pending = seen.route.record.pending if seen.route.record is not None else None
    count = "an unknown number of" if pending is None else str(pending)
    message = f"the backlog of before goes on: {count} records were pending"
    return Condition(ConditionType.BACKEND_READY, TRUE, "ResumedBacklog", message)


def _is_old_news(seen: Observation) -> bool:
    """Tell if the status has told of it for an hour: where records keep arriving, some are always pending."""
    conditions = seen.route.status.get("conditions") or ()
    told = next((each for each in conditions if each.get("type") == ConditionType.BACKEND_READY), None)
    return told is not None and seen.now_ms - instant_ms(told["lastTransitionTime"]) >= NEWS_MS


def _foreign(seen: Observation, accepted: Condition, refusal: str, decision: Decision | None) -> Plan:
    remains = plan_orphans(seen)
    condition = Condition(ConditionType.BACKEND_READY, FALSE, "RetainedBacklogForeign", refusal)
    return Plan(
        actions=remains.actions,
        conditions=[accepted, condition],
        progress=Progress(stalled=refusal, stalled_reason=condition.reason),
        parts=parts_of(seen, None, decision),
        next_at_ms=remains.next_at_ms or relay_objects.next_look(seen, decision),
    )


def _discarding(seen: Observation, accepted: Condition, record: RouteRecord) -> Plan:
    """Plan the removal of a retained backlog, once nobody writes any more."""
    remains = plan_orphans(seen)
    progress = Progress(reconciling="the retained backlog is discarded, as the annotation asks for")
    stopped = seen.fleet.deployment is None and not seen.fleet.pods
    if not stopped:
        return Plan(remains.actions, [accepted], progress, next_at_ms=seen.now_ms + min(seen.config.poll.ms, 5_000))
    # What is committed now is the end of the source: an older backup would bring the backlog back one day.
    emptied = record.in_state(RecordState.RETAINED, pending=0).model_copy(update={"offsets": None})
    count = "an unknown number of" if record.pending is None else str(record.pending)
    return Plan(
        actions=[Purge(record, topics=False), WriteRecord(emptied, None)],
        conditions=[accepted],
        progress=progress,
        events=[Event(WARNING, "BacklogDiscarded", f"{count} retained records are discarded")],
        next_at_ms=seen.now_ms,
    )
