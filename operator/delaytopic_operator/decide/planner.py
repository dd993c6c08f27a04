"""The one decision of a reconciliation: what follows from what is known, to be done and said. Pure."""

from __future__ import annotations

from dataclasses import replace

from delaytopic_api.documents import ConditionType
from delaytopic_api.values import Suspend
from delaytopic_operator.decide import relay_objects, revoked
from delaytopic_operator.decide.backlog import foreign_or_discarded, is_resumed, resumed_condition
from delaytopic_operator.decide.deletion import needs_hold, plan_deletion, plan_orphans
from delaytopic_operator.decide.held_back import held_back
from delaytopic_operator.decide.offsets import not_kept, outdated, restored, retention_advice, with_backup
from delaytopic_operator.decide.other_owner import harmless, other_owner
from delaytopic_operator.decide.plan import (
    FINALIZER,
    Action,
    AddFinalizer,
    DoTopic,
    Plan,
    RemoveFinalizer,
    RemoveMembers,
    WriteRecord,
    step_in,
)
from delaytopic_operator.decide.rules_in_force import are_settled, rules_conditions, rules_of, rules_taken_over
from delaytopic_operator.decide.standing_still import retention_passed, standing_still, target_unavailable
from delaytopic_operator.decide.status_parts import parts_of
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition, Progress, instant_ms
from delaytopic_operator.model.declared_rules import DeclaredRules
from delaytopic_operator.model.kube_cluster import member_name
from delaytopic_operator.model.record import RecordState, RouteRecord, begin_record, continue_record
from delaytopic_operator.model.transitions import NORMAL, WARNING, Event
from delaytopic_operator.observe.audit_verdict import parsed_slo
from delaytopic_operator.observe.fleet import quota_condition
from delaytopic_operator.observe.observation import PAUSE, Observation, Problem, is_paused
from delaytopic_operator.rules.validate import Accepted, Refusal
from delaytopic_operator.scaling.assessment import ScalingPolicy
from delaytopic_operator.scaling.by_hand import SETTLES_MS
from delaytopic_operator.scaling.decision import Decision, decide
from delaytopic_operator.scaling.pace import Pace
from delaytopic_operator.scaling.state import ScalingMemory
from delaytopic_operator.topics.plan import TopicPlan, plan_topics

DRY_RUN = "delaytopic.dev/dry-run"

_SUSPENDED = {
    Suspend.DELIVERY: "spec.suspend is Delivery: what is due is held",
    Suspend.INGEST: "spec.suspend is Ingest: nothing is taken in",
    Suspend.ALL: "spec.suspend is All: nothing is taken in, and what is due is held",
}


def plan(seen: Observation) -> Plan:
    """Decide what to do and say now."""
    if seen.route.document is not None and is_paused(seen):
        message = f"the annotation {PAUSE} is set: nothing is changed; the relays run on"
        return Plan(conditions=[Condition(ConditionType.PAUSED, TRUE, "Annotation", message)])
    decision = decide_scaling(seen)
    decided = replace(_decided(seen, decision), scaling=decision)
    if decision is not None and decision.by_hand is not None:
        decided = replace(decided, events=[*decided.events, Event(WARNING, "ScaledByHand", decision.by_hand)])
    return decided


def findings(
    seen: Observation, topic_plan: TopicPlan | None, decision: Decision | None, rules: DeclaredRules | None
) -> list[Condition]:
    """List what is found of a DelayTopic that is accepted."""
    return [
        _accepted(seen),
        _topics_condition(seen, topic_plan),
        _backend_condition(seen, topic_plan),
        *relay_objects.conditions(seen, decision),
        *rules_conditions(seen, rules),
        *held_back(seen),
        *other_owner(seen),
    ]


def decide_scaling(seen: Observation) -> Decision | None:
    """Decide the number of relays; None while there is no Deployment or nothing is known of it."""
    route, fleet = seen.route, seen.fleet
    if route.accepted is None or fleet.deployment is None or fleet.signals is None or route.is_going:
        return None
    memory = _memory(seen)
    policy = ScalingPolicy.of(route.accepted.settings, route.annotations, _pace(seen))
    return decide(policy, fleet.desired, fleet.signals, memory, seen.now_ms)


def _pace(seen: Observation) -> Pace:
    waited_ms = max(0, seen.now_ms - seen.fleet.asked_for_ms) if seen.fleet.asked_for_ms is not None else 0
    return Pace(seen.config.poll.ms, waited_ms)


def _memory(seen: Observation) -> ScalingMemory:
    """Return the newest memory of scaling: another operator may have led since this one did."""
    known = [memory for memory in (seen.fleet.memory, seen.fleet.saved_memory) if memory is not None]
    memory = max(known, key=lambda each: each.watch.asked_ms or 0, default=ScalingMemory())
    made = (seen.fleet.deployment or {}).get("metadata", {}).get("creationTimestamp")
    if made is None or instant_ms(made) + SETTLES_MS <= (memory.watch.asked_ms or 0):
        return memory
    # The number of relays of a Deployment that was made anew is nobody's change.
    return replace(memory, replicas=None)


def _decided(seen: Observation, decision: Decision | None) -> Plan:
    if seen.route.document is None:
        return plan_orphans(seen)
    if seen.route.is_going:
        return plan_deletion(seen)
    if isinstance(seen.route.verdict, Refusal):
        return _refused(seen, seen.route.verdict, decision)
    assert isinstance(seen.route.verdict, Accepted)
    if seen.route.record_problem is not None:
        return _troubled(seen, ConditionType.TOPICS_READY, seen.route.record_problem, decision)
    former = foreign_or_discarded(seen, _accepted(seen), decision)
    if former is not None:
        return former
    return _living(seen, seen.route.verdict, decision)


def _refused(seen: Observation, refusal: Refusal, decision: Decision | None) -> Plan:
    """Plan without touching what is there; relays that run go on, unless their class has them stop."""
    refusal = revoked.told(seen, refusal)
    condition = Condition(ConditionType.POLICY_ACCEPTED, FALSE, refusal.reason, refusal.message)
    stalled = refusal.message if refusal.stalled else None
    return Plan(
        actions=[*revoked.written_down(seen), *revoked.stops(seen)],
        conditions=[condition, *relay_objects.conditions(seen, decision), *rules_conditions(seen)],
        progress=Progress(stalled=stalled, stalled_reason=refusal.reason),
        parts=parts_of(seen, None, decision),
        next_at_ms=relay_objects.next_look(seen, decision),
    )


def _troubled(seen: Observation, type: ConditionType, problem: Problem, decision: Decision | None) -> Plan:
    conditions = [
        _accepted(seen),
        Condition(type, FALSE, problem.reason, problem.message),
        *relay_objects.conditions(seen, decision),
        *rules_conditions(seen),
    ]
    stalled = problem.message if problem.stalled else None
    return Plan(
        conditions=conditions,
        progress=Progress(stalled=stalled, stalled_reason=problem.reason),
        parts=parts_of(seen, None, decision),
        next_at_ms=relay_objects.next_look(seen, decision),
    )


def _living(seen: Observation, accepted: Accepted, decision: Decision | None) -> Plan:
    record = _record(seen, accepted)
    topic_plan = _topics(seen, accepted, record)
    record = _with_audit(with_backup(topic_plan.record if topic_plan is not None else record, seen), seen)
    wanted = relay_objects.wanted(seen, accepted, decision, may_begin=_may_begin(seen, topic_plan))
    changes = relay_objects.changes(seen, wanted, decision)
    record = rules_taken_over(record, seen, wanted)
    conditions = findings(seen, topic_plan, decision, record.rules)
    busy = bool(topic_plan and topic_plan.actions and not other_owner(seen))
    step = step_in(changes)
    gone = sorted(member_name(pod, seen.route.kube_cluster) for pod in seen.fleet.gone)
    actions = [
        # Before all else: partitions wait for it.
        *([RemoveMembers(record.group_id, gone)] if gone else []),
        *_held(seen, accepted),
        *_written(seen, record, decision, step),
        *_topic_actions(seen, topic_plan),
        *restored(seen, record, changes),
        *changes,
        # A step is written down once it was executed.
        *([WriteRecord(record, step.memory)] if step is not None else []),
    ]
    return Plan(
        actions=harmless(seen, actions),
        conditions=conditions,
        progress=_progress(seen, topic_plan, [change.planned().object for change in changes]),
        suspended=_SUSPENDED.get(accepted.settings.suspend),
        parts=parts_of(seen, topic_plan, decision),
        events=_events(seen, topic_plan),
        topics=topic_plan,
        rules_are_settled=are_settled(record, seen, wanted),
        next_at_ms=seen.now_ms if busy else relay_objects.next_look(seen, decision),
    )


def _accepted(seen: Observation) -> Condition:
    assert seen.route.accepted is not None
    of_class = seen.route.accepted.delay_class
    by = f"DelayClass {of_class.metadata.name}" if of_class else "the inline connection"
    return Condition(ConditionType.POLICY_ACCEPTED, TRUE, "Accepted", f"allowed by {by}")


def _record(seen: Observation, accepted: Accepted) -> RouteRecord:
    namespace, known = seen.route.namespace, seen.route.record
    assert namespace is not None
    cluster_id = seen.topics.cluster_id if seen.topics is not None else None
    if known is None:
        first = {"cluster_id": cluster_id, "rules": rules_of(seen, accepted)}
        return begin_record(accepted.settings, namespace.uid).model_copy(update=first)
    resumed = continue_record(known, accepted.settings)
    now = {
        "namespace_uid": namespace.uid,
        "pending": known.pending if is_resumed(seen) else None,
        "cluster_id": cluster_id or known.cluster_id,
        "rules": rules_of(seen, accepted),
        "outdated": known.outdated if outdated(seen) is not None else None,
    }
    return resumed.model_copy(update=now)


def _with_audit(record: RouteRecord, seen: Observation) -> RouteRecord:
    """Return the record with the figures of the last audit: pods are removed in time, and the status has but some."""
    audited = parsed_slo(seen.audit.slo.slo) if seen.audit.slo is not None else None
    return record if audited is None else record.model_copy(update={"audited": audited})


def _topics(seen: Observation, accepted: Accepted, record: RouteRecord) -> TopicPlan | None:
    topics = seen.topics
    if topics is None:
        return None
    return plan_topics(
        accepted.settings,
        accepted.topic.spec,
        topics.view,
        record,
        seen.route.annotations,
        topics.buckets,
        topics.released,
        topics.strimzi,
    )


def _topics_condition(seen: Observation, topic_plan: TopicPlan | None) -> Condition:
    problem = seen.route.secrets_problem or seen.topics_problem
    if topic_plan is not None:
        still = (standing_still(seen) or target_unavailable(seen)) if topic_plan.topics.status is TRUE else None
        return still if still is not None else topic_plan.topics
    if problem is None:
        return Condition(ConditionType.TOPICS_READY, UNKNOWN, "Unknown", "not looked at yet")
    return Condition(ConditionType.TOPICS_READY, UNKNOWN if problem.passing else FALSE, problem.reason, problem.message)


def _backend_condition(seen: Observation, topic_plan: TopicPlan | None) -> Condition:
    """Return the worst condition of topics and Redis about where schedules wait."""
    assert seen.route.accepted is not None
    if (problem := seen.route.secrets_problem) is not None:
        return Condition(ConditionType.BACKEND_READY, FALSE, problem.reason, problem.message)
    of_topics = topic_plan.backend if topic_plan else ()
    others = [outdated(seen), retention_passed(seen), *of_topics, quota_condition(seen.fleet), seen.backend]
    found = [condition for condition in others if condition is not None]
    worst = sorted(found, key=lambda condition: condition.status is TRUE)
    if worst:
        return worst[0]
    if is_resumed(seen):
        return resumed_condition(seen)
    backend = seen.route.accepted.settings.backend
    message = "; ".join(filter(None, [f"schedules wait in {backend.type}", retention_advice(seen)]))
    return Condition(ConditionType.BACKEND_READY, TRUE, "Ready", message)


def _may_begin(seen: Observation, topic_plan: TopicPlan | None) -> bool:
    """Tell if everything is there that relays read at the start."""
    return (
        topic_plan is not None
        and topic_plan.topics.status is TRUE
        and not topic_plan.actions
        and seen.route.secrets_problem is None
    )


def _held(seen: Observation, accepted: Accepted) -> list[Action]:
    held = FINALIZER in (seen.route.metadata.get("finalizers") or ())
    wanted = needs_hold(accepted.settings.deletion_policy)
    if held == wanted:
        return []
    return [AddFinalizer()] if wanted else [RemoveFinalizer()]


def _written(seen: Observation, record: RouteRecord, decision: Decision | None, step: Decision | None) -> list[Action]:
    """Write the record before anything that it names is made; the memory of scaling waits for a step of this plan."""
    memory = decision.held if decision is not None else None
    worth = step is None and memory is not None and memory.worth_saving(seen.fleet.saved_memory)
    if record == seen.route.record and not worth:
        return []
    return [WriteRecord(record, memory if memory is not None else seen.fleet.saved_memory)]


def _topic_actions(seen: Observation, topic_plan: TopicPlan | None) -> list[Action]:
    if topic_plan is None:
        return []
    objects = seen.topics.strimzi.live.values() if seen.topics is not None and seen.topics.strimzi is not None else ()
    return [
        *(DoTopic(action) for action in topic_plan.actions),
        *relay_objects.strimzi_changes(topic_plan.documents, topic_plan.obsolete, objects),
    ]


def _progress(seen: Observation, topic_plan: TopicPlan | None, changes: list[str]) -> Progress:
    if others := other_owner(seen):
        return Progress(stalled=others[0].message, stalled_reason=others[0].reason)
    if topic_plan is not None and topic_plan.stalled is not None:
        return Progress(stalled=topic_plan.stalled, stalled_reason=topic_plan.topics.reason)
    if seen.topics_problem is not None and seen.topics_problem.stalled:
        return Progress(stalled=seen.topics_problem.message, stalled_reason=seen.topics_problem.reason)
    still = standing_still(seen)
    if still is not None:
        return Progress(stalled=still.message, stalled_reason=still.reason)
    if topic_plan is not None and topic_plan.reconciling is not None:
        return Progress(reconciling=topic_plan.reconciling)
    if changes:
        return Progress(reconciling=f"changing {', '.join(changes)}")
    return Progress(reconciling=seen.fleet.rolling if seen.fleet.deployment is not None else None)


def _events(seen: Observation, topic_plan: TopicPlan | None) -> list[Event]:
    events = [
        Event(WARNING if event.warning else NORMAL, event.reason, event.note)
        for event in (topic_plan.events if topic_plan else ())
    ]
    record = seen.route.record
    if record is not None and record.state is not RecordState.ACTIVE and record.pending != 0:
        count = "an unknown number of" if record.pending is None else str(record.pending)
        events.append(Event(NORMAL, "BacklogResumed", f"{count} retained records go on"))
    events += not_kept(seen)
    return events
