"""The explanation: every number behind a decision, for `kubectl delaytopic why-scale`."""

from __future__ import annotations

from typing import Any

from delaytopic_operator.scaling import wording
from delaytopic_operator.scaling.assessment import Assessment
from delaytopic_operator.scaling.conditions import ScalingCondition
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.need import Need, NeedKind
from delaytopic_operator.scaling.signals import FleetSignals
from delaytopic_operator.scaling.state import ScalingMemory

MOST_NEEDS = 5
"""The largest ones tell the story."""


def explain(decision: Decision, signals: FleetSignals) -> dict[str, Any]:
    """Dump plain JSON in camel case; times are epoch milliseconds, what is not known is null."""
    assessment, forecast = decision.assessment, decision.forecast
    return {
        "decidedAtMs": decision.decided_at_ms,
        "nextLookMs": decision.next_look_ms,
        "mode": str(decision.mode),
        "current": decision.current,
        "decided": decision.replicas,
        "wanted": decision.wanted,
        "reason": str(decision.reason),
        "sentence": decision.sentence,
        "sizes": _sizes(assessment) if assessment else None,
        "needs": _needs(assessment) if assessment else [],
        "capacity": _capacity(assessment, decision.memory) if assessment else None,
        "forecastLatenessMs": (
            {"current": forecast.held_ms, "decided": forecast.decided_ms, "most": forecast.best_ms}
            if forecast
            else None
        ),
        "signals": _signals(signals, decision.decided_at_ms),
        "conditions": [_condition(each) for each in (decision.active, decision.capacity)],
    }


def _sizes(assessment: Assessment) -> dict[str, Any]:
    sizes = assessment.sizes
    return {"partitions": sizes.partitions, "maxUseful": sizes.max_useful, "allowed": list(sizes.allowed)}


def _needs(assessment: Assessment) -> list[dict[str, Any]]:
    binding = assessment.binding
    by_span: dict[tuple[NeedKind, int], Need] = {}
    for need in sorted(assessment.needs, key=lambda need: -need.relays):
        by_span.setdefault((need.kind, need.to_ms), need)
    largest = list(by_span.values())[:MOST_NEEDS]
    return [_need(assessment, need, binds=need is binding) for need in largest]


def _need(assessment: Assessment, need: Need, *, binds: bool) -> dict[str, Any]:
    return {
        "kind": str(need.kind),
        "relays": round(need.relays, 2),
        "size": assessment.sizes.fit(need.relays),
        "records": need.records,
        "fromMs": need.from_ms,
        "toMs": need.to_ms,
        "actFromMs": need.pressing_ms - assessment.reach_ms,
        "binding": binds,
    }


def _capacity(assessment: Assessment, memory: ScalingMemory) -> dict[str, Any]:
    return {
        "perRelay": assessment.per_second,
        "measured": memory.capacity.delivery.measured,
        "leadTimeMs": assessment.lead_ms,
        "measuredStarts": len(memory.lead_time.starts_ms),
    }


def _signals(signals: FleetSignals, now_ms: int) -> dict[str, Any]:
    readings = {
        "pending": signals.pending,
        "overdue": signals.overdue,
        "ingestLag": signals.ingest_lag,
        "nextDueMs": signals.next_due,
        "sourceEnd": signals.source_end,
    }
    known = {
        name: {"value": reading.value, "ageMs": max(0, now_ms - reading.as_of_ms)} if reading else None
        for name, reading in readings.items()
    }
    return {
        **known,
        "dueWithinLookAhead": signals.due.records if signals.due else None,
        "uncoveredPartitions": list(signals.uncovered),
        "silentRelays": list(signals.silent),
    }


def _condition(condition: ScalingCondition) -> dict[str, str]:
    return {
        "type": str(condition.type),
        "status": str(condition.status),
        "reason": condition.reason,
        "message": condition.message,
    }


def as_text(document: dict[str, Any]) -> str:
    """Write the document for a terminal."""
    lines = [document["sentence"], ""]
    lines += [
        f"  {each['type']}: {each['status']} ({each['reason']}). {each['message']}" for each in document["conditions"]
    ]
    sizes, capacity, late = (document.get(name) for name in ("sizes", "capacity", "forecastLatenessMs"))
    if sizes and capacity:
        allowed = ", ".join(map(str, sizes["allowed"]))
        lines += ["", f"Sizes for {wording.count(sizes['partitions'], 'partition')}: {allowed}."]
        how = "measured" if capacity["measured"] else "assumed, nothing was measured yet"
        lines.append(
            f"A relay delivers {capacity['perRelay']:,.0f} a second ({how}), {_start(capacity)} after it was asked for."
        )
    if document["needs"]:
        lines += ["", "Needs, in relays:"]
        lines += [_need_line(need, document["decidedAtMs"]) for need in document["needs"]]
    if late:
        parts = (f"{wording.length(late[name])} with {what}" for name, what in _FLEETS if late.get(name) is not None)
        lines += ["", f"Forecast lateness: {', '.join(parts)}."]
    return "\n".join(
        [*lines, *_unknown_lines(document["signals"]), f"Looks again at {wording.clock(document['nextLookMs'])}."]
    )


_FLEETS = (("current", "the present relays"), ("decided", "those decided"), ("most", "the most that may be"))


def _start(capacity: dict[str, Any]) -> str:
    starts = capacity["measuredStarts"]
    how = f"p95 of {wording.count(starts, 'start')}" if starts else "assumed"
    return f"{wording.length(capacity['leadTimeMs'])} ({how})"


def _need_line(need: dict[str, Any], decided_at_ms: int) -> str:
    mark = "*" if need["binding"] else " "
    what = f"{wording.count(need['records'], 'record')} {wording.between(need['fromMs'], need['toMs'])}"
    when = "" if need["actFromMs"] <= decided_at_ms else f", to act on from {wording.clock(need['actFromMs'])}"
    return f"{mark} {need['relays']:6.2f}  {need['kind']:<7}  {what}{when}"


def _unknown_lines(signals: dict[str, Any]) -> list[str]:
    lines = []
    if signals["uncoveredPartitions"]:
        lines.append(f"No relay reports {wording.partitions(tuple(signals['uncoveredPartitions']))}.")
    if signals["silentRelays"]:
        lines.append(f"Too old to count: {', '.join(signals['silentRelays'])}.")
    return lines
