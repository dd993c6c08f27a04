"""No relay while nothing is pending and nothing arrives; and back in time."""

from __future__ import annotations

from delaytopic_operator.scaling import wording
from delaytopic_operator.scaling.outcome import Reason
from delaytopic_operator.scaling.reading import fresh
from delaytopic_operator.scaling.verdict import Case, Verdict

SILENT_MS = 600_000
"""For so long nothing must have arrived."""
BLIND_MS = 300_000
"""After so long without an answer, relays run: what is not known may be a record that waits."""
LEADS = 2
"""So many lead times before a due time relays are started."""


def asleep(case: Case) -> Verdict | None:
    """With no relay: wake, or sleep on. None with relays."""
    if case.current > 0:
        return None
    if not case.may_sleep:
        return _wake(case, Reason.MIN_REPLICAS, "scaleToZero is Never")
    end, backlog = fresh(case.signals.source_end, case.now_ms), case.memory.backlog
    if backlog is None:
        return _wake(case, Reason.BLIND, "nobody knows what is pending")
    if case.policy.delivers and backlog.pending:
        wake_ms = None if backlog.next_due_ms is None else backlog.next_due_ms - LEADS * case.assessment.lead_ms
        if wake_ms is None or case.now_ms >= wake_ms:
            return _wake(case, Reason.NEXT_DUE, _next_due(backlog.next_due_ms))
    if case.policy.takes_in and end is None:
        return _blind(case)
    if case.policy.takes_in and end != backlog.end:
        return _wake(case, Reason.NEW_RECORDS, f"{_new(end, backlog.end)} in the source")
    return _sleep_on(case)


def may_go(case: Case) -> Verdict | None:
    """With relays: whether none is needed any more."""
    if not case.may_sleep or not case.complete or case.current == 0 or not case.policy.delivers:
        return None
    signals, now_ms = case.signals, case.now_ms
    pending = fresh(signals.pending, now_ms)
    end, position = fresh(signals.source_end, now_ms), fresh(signals.position, now_ms)
    silent_ms = case.memory.arrivals.silent_ms(now_ms)
    if pending != 0 or end is None or end != position or silent_ms is None or silent_ms < SILENT_MS:
        return None
    return Verdict(
        0, Reason.NOTHING_PENDING, f"nothing is pending, and nothing has arrived for {wording.length(silent_ms)}"
    )


def _sleep_on(case: Case) -> Verdict:
    backlog = case.memory.backlog
    if backlog is None or not backlog.pending or backlog.next_due_ms is None:
        return case.hold(Reason.ASLEEP, "nothing is pending")
    why = f"{wording.count(backlog.pending, 'record')} pending, the next due at {wording.clock(backlog.next_due_ms)}"
    return case.hold(Reason.ASLEEP, why, backlog.next_due_ms - LEADS * case.assessment.lead_ms)


def _blind(case: Case) -> Verdict:
    watched_ms = case.memory.arrivals.points[-1].at_ms if case.memory.arrivals.points else None
    since_ms = max(each for each in (watched_ms, case.memory.watch.seen_ms, 0) if each is not None)
    if case.now_ms - since_ms < BLIND_MS:
        return case.hold(Reason.SIGNAL_STALE, "Kafka does not tell whether records have arrived")
    return _wake(case, Reason.BLIND, "Kafka has not told for long whether records have arrived")


def _wake(case: Case, reason: Reason, why: str) -> Verdict:
    return Verdict(max(case.least, case.assessment.wanted), reason, why)


def _next_due(next_due_ms: int | None) -> str:
    return "records are pending" if next_due_ms is None else f"a record is due at {wording.clock(next_due_ms)}"


def _new(end: int | None, before: int) -> str:
    more = (end or 0) - before
    return wording.count(more, "new record") if more > 0 else "other records than before"
