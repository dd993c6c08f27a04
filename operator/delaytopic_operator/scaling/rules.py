"""The rule, as an ordered list: the first that has something to say decides."""

from __future__ import annotations

from collections.abc import Callable

from delaytopic_api.values import Suspend
from delaytopic_operator.scaling import wording, zero
from delaytopic_operator.scaling.need import Need, NeedKind
from delaytopic_operator.scaling.outcome import Reason
from delaytopic_operator.scaling.verdict import Case, Verdict

BLIND_MS = 300_000
"""After so long without a word of any relay, as many run as in the last day's peaks."""
STEP_MS = 30_000
"""Between any two steps."""
STEP_DOWN_MS = 60_000
"""Between a step and one down: each costs a rebalance."""

REASONS = {NeedKind.DUE: Reason.DUE, NeedKind.OVERDUE: Reason.OVERDUE, NeedKind.INGEST: Reason.INGEST}


def suspended(case: Case) -> Verdict | None:
    """Everything stands still on purpose: so does the fleet."""
    if case.policy.suspend is not Suspend.ALL:
        return None
    return case.hold(Reason.SUSPENDED, "delivery and ingest are suspended")


def limits(case: Case) -> Verdict | None:
    """Limits hold whatever the signals say: people set them."""
    if case.current > case.most:
        why = f"{case.most} of {wording.count(case.assessment.sizes.partitions, 'partition')} is the most of use"
        if not case.assessment.sizes.bound_by_partitions:
            why = f"maxReplicas is {case.policy.autoscaling.max_replicas}"
        return Verdict(case.most, Reason.MAX_REPLICAS, why)
    if 0 < case.current < case.least:
        return Verdict(case.least, Reason.MIN_REPLICAS, f"minReplicas is {case.policy.autoscaling.min_replicas}")
    return None


def blind(case: Case) -> Verdict | None:
    """No relay tells anything: hold, and after a while trust the last day more than the present."""
    if case.assessment.known:
        return None
    peak = min(case.most, case.memory.peaks.p95() or 0)
    if case.blind_ms >= BLIND_MS and peak > case.current:
        why = f"no relay has told anything for {wording.length(case.blind_ms)}; so many were enough in the last day"
        return Verdict(peak, Reason.BLIND, why)
    return case.hold(Reason.SIGNAL_STALE, "no relay tells what is due", case.now_ms + case.policy.poll_ms)


def up(case: Case) -> Verdict | None:
    """More, if what is at hand asks for it and more can help."""
    need, wanted = case.assessment.helpful, case.assessment.useful
    if need is None or wanted <= case.current:
        return None
    if case.memory.throttled_since_ms is not None and need.kind is not NeedKind.INGEST:
        why = "the last relays that were added delivered nothing more: what they send to is the limit"
        return case.hold(Reason.TARGET_THROTTLED, why)
    return Verdict(wanted, REASONS[need.kind], told(case, need))


def down(case: Case) -> Verdict | None:
    """Fewer, if fewer have been enough for a while, and will be for as long as anybody can see."""
    window_ms = case.policy.autoscaling.scale_down_stabilization.ms
    if case.assessment.enough >= case.current or not case.policy.delivers:
        return None
    if not case.complete:
        return case.hold(Reason.SIGNAL_STALE, missing(case))
    if case.assessment.enough_ahead >= case.current:
        later = case.assessment.later
        return case.hold(Reason.NEEDED_SOON, told(case, later) if later else "more is needed soon")
    since_ms = case.memory.watch.since_ms
    if since_ms is None or case.now_ms - since_ms < window_ms:
        seen_ms = case.now_ms - since_ms if since_ms is not None else 0
        why = f"all signals have been there for {wording.length(seen_ms)} of {wording.length(window_ms)}"
        return case.hold(Reason.STABILIZING, why)
    wish = case.memory.wishes.most(case.now_ms, window_ms)
    if wish is not None and wish.relays >= case.current:
        verb = "was" if wish.relays == 1 else "were"
        why = f"{wording.count(wish.relays, 'relay')} {verb} wanted at {wording.clock(wish.at_ms)}"
        return case.hold(Reason.STABILIZING, why)
    least = max(case.assessment.enough_ahead, wish.relays if wish else 0)
    have = "relay has" if least == 1 else "relays have"
    return Verdict(least, Reason.LESS_NEEDED, f"{least} {have} been enough for {wording.length(window_ms)}")


def enough(case: Case) -> Verdict:
    """Nothing to do."""
    need = case.assessment.binding
    if need is not None and need.relays > case.assessment.sizes.power(case.current):
        if case.current >= case.most:
            return case.hold(Reason.AT_MAXIMUM, told(case, need))
        return case.hold(Reason.TOO_LATE, f"{told(case, need)}, but it will be over before another relay could help")
    if not case.policy.delivers:
        return case.hold(Reason.SUSPENDED, "delivery is suspended: what is due waits, and relays stay for it")
    return case.hold(Reason.ENOUGH, "no more are needed, and no fewer")


RULES: tuple[Callable[[Case], Verdict | None], ...] = (
    suspended,
    limits,
    zero.asleep,
    blind,
    up,
    zero.may_go,
    down,
)


def first_verdict(case: Case) -> Verdict:
    """The first rule that speaks; then what holds its step."""
    for rule in RULES:
        verdict = rule(case)
        if verdict is not None:
            return restrained(case, verdict)
    return enough(case)


def restrained(case: Case, verdict: Verdict) -> Verdict:
    """A step may be paused by an annotation, or come too soon after the last one."""
    if verdict.replicas == case.current:
        return verdict
    upward = verdict.replicas > case.current
    wish = f"{wording.count(verdict.replicas, 'relay')} would be right: {verdict.why}"
    if upward and case.policy.paused_scale_out:
        return case.hold(Reason.PAUSED_SCALE_OUT, wish)
    if not upward and case.policy.paused_scale_in:
        return case.hold(Reason.PAUSED_SCALE_IN, wish)
    step = case.memory.step
    # A sleeping fleet wakes at once: it was put to sleep after long silence, so that this cannot flap.
    if step is None or case.current == 0:
        return verdict
    next_ms = step.at_ms + (STEP_MS if upward else STEP_DOWN_MS)
    if case.now_ms < next_ms and verdict.reason not in (Reason.MIN_REPLICAS, Reason.MAX_REPLICAS):
        return case.hold(Reason.STEP_TOO_SOON, wish, next_ms)
    return verdict


def told(case: Case, need: Need) -> str:
    """A need in words, with its numbers."""
    records = wording.count(need.records, "record")
    if need.kind is NeedKind.OVERDUE:
        when = "overdue" if need.from_ms <= case.now_ms else f"still overdue at {wording.clock(need.from_ms)}"
        return f"{records} {when}, and a relay delivers {case.assessment.per_second:,} a second"
    if need.kind is NeedKind.INGEST:
        rate = case.assessment.ingest_per_second
        return f"{records} to take in within a minute, and a relay takes in {rate:,} a second"
    when = wording.between(need.from_ms, need.to_ms)
    return f"{records} due {when}, and a relay delivers {case.assessment.per_second:,} a second"


def missing(case: Case) -> str:
    """What is not known."""
    if case.signals.uncovered:
        return f"no relay reports {wording.partitions(case.signals.uncovered)}"
    if case.signals.settling:
        return f"{wording.partitions(tuple(sorted(case.signals.settling)))} being recovered"
    return "not all source partitions are known"
