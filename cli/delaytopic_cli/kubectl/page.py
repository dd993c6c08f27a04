"""A DelayTopic as a page, and many as a table. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from delaytopic_cli.kubectl.facts import remarkable

Facts = Mapping[str, Any]
_ROLES = {"source": "source", "target": "target", "deadLetter": "dead letter"}
_LATE = "DeliveringOnTime"
_LABEL_WIDTH = 12
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def page_lines(document: Mapping[str, Any], facts: Facts, now_ms: int, width: int) -> Iterator[str]:
    """Yield the verdict first, then what matters, part by part."""
    yield f"{facts['namespace']}/{facts['name']}: {facts['verdict']}"
    yield from _wrapped(str(facts["sentence"]), width)
    troubles = [each for each in remarkable(document) if each.get("message") != facts["sentence"]]
    if troubles:
        yield ""
        for each in troubles:
            since = ago(each.get("lastTransitionTime"), now_ms)
            said = (
                f"{each.get('type')} is {each.get('status')} for {since} ({each.get('reason')}): {each.get('message')}"
            )
            yield from _wrapped(said, width)
    yield ""
    for place, line in enumerate(_topic_lines(facts)):
        yield f"{'' if place else 'topics':<{_LABEL_WIDTH}}{line}"
    for label, text in _parts(facts, now_ms):
        yield from _labelled(label, text, width)
    yield from _labelled("lateness", _lateness(facts), width)
    if facts["events"]:
        yield ""
        yield from _event_lines(facts["events"], now_ms, width)


def table_lines(all_facts: Iterable[Facts], now_ms: int, *, namespaces: bool) -> list[str]:
    """Return a line for each DelayTopic."""
    head = ("NAMESPACE", "NAME", "VERDICT", "PENDING", "OVERDUE", "NEXT DUE", "RELAYS", "P99", "SOURCE")
    rows = [head, *(_row(facts, now_ms) for facts in all_facts)]
    return columns(rows if namespaces else [row[1:] for row in rows])


def _row(facts: Facts, now_ms: int) -> tuple[str, ...]:
    backlog, relays, slo = facts["backlog"] or {}, facts["relays"] or {}, facts["slo"] or {}
    return (
        str(facts["namespace"]),
        str(facts["name"]),
        str(facts["verdict"]),
        number(backlog.get("pending")),
        number(backlog.get("overdue")),
        distance(backlog.get("nextDue"), now_ms),
        str(relays.get("summary") or "-"),
        str(slo.get("latenessP99") or "-"),
        str(facts["topics"]["source"]["topic"]),
    )


def _parts(facts: Facts, now_ms: int) -> Iterator[tuple[str, str]]:
    yield "backlog", _backlog(facts, now_ms)
    if facts["formerRules"]:
        yield "kept rules", "; ".join(_former(each, now_ms) for each in facts["formerRules"])
    yield "relays", _relays(facts, now_ms)
    scaling = facts["scaling"] or {}
    yield "scaling", str(scaling.get("sentence") or "no decision is in force")
    yield "SLO", _slo(facts)


def _topic_lines(facts: Facts) -> list[str]:
    rows = []
    for role, each in facts["topics"].items():
        partitions = each["partitions"]
        size = count(partitions, "partition") if partitions is not None else "not seen yet"
        rows.append((_ROLES[role], str(each["topic"] or "-"), size, str(each["ownership"] or "")))
    return columns(rows)


def _backlog(facts: Facts, now_ms: int) -> str:
    backlog, backend = facts["backlog"], (facts["backend"] or {}).get("type") or "the backend"
    if not backlog:
        return f"not known: no relay has answered yet (schedules wait in {backend})"
    parts = [f"{number(backlog.get('pending'))} pending", f"{number(backlog.get('overdue'))} overdue"]
    if backlog.get("dueWithinLookAhead") is not None:
        parts.append(f"{number(backlog['dueWithinLookAhead'])} due soon")
    if instant_ms(backlog.get("nextDue")) is not None:
        parts.append(f"next {distance(backlog['nextDue'], now_ms)}")
    return f"{', '.join(parts)} (in {backend}, counted {distance(backlog.get('asOf'), now_ms)})"


def _former(rules: Mapping[str, Any], now_ms: int) -> str:
    words = [f"maxDelay {rules.get('maxDelay')}"]
    words += [f"{name} {rules[name]}" for name in ("defaultDelay", "fixedDelay") if rules.get(name)]
    words += [f"ids {rules.get('ids')}", f"dialect {rules.get('dialect')}"]
    many = count(rules.get("records"), "record")
    return f"{many} with {', '.join(words)}, the last due {distance(rules.get('lastDue'), now_ms)}"


def _relays(facts: Facts, now_ms: int) -> str:
    relays = facts["relays"]
    if not relays:
        return "none yet"
    parts = [f"{number(relays.get('readyReplicas') or 0)} of {count(relays.get('replicas') or 0, 'relay')} ready"]
    if relays.get("desiredReplicas") is not None:
        parts.append(f"{number(relays['desiredReplicas'])} wanted")
    if relays.get("maxUsefulReplicas") is not None:
        parts.append(f"more than {number(relays['maxUsefulReplicas'])} would not help")
    if relays.get("lastScaleTime"):
        parts.append(f"number changed {distance(relays['lastScaleTime'], now_ms)}")
    return ", ".join(parts) + (f" (version {relays['version']})" if relays.get("version") else "")


def _lateness(facts: Facts) -> str:
    said = next((each for each in facts["conditions"] if each.get("type") == _LATE), None)
    precision = (facts["effective"] or {}).get("precision")
    text = str(said.get("message")) if said is not None else "not known yet"
    return f"{text} (precision {precision})" if precision and "precision" not in text else text


def _slo(facts: Facts) -> str:
    slo = facts["slo"]
    if not slo:
        return "no audit has run yet"
    parts = [f"{slo['attainmentPercent']} on time"] if slo.get("attainmentPercent") else []
    parts += [f"99 of 100 at most {slo['latenessP99']} late"] if slo.get("latenessP99") else []
    parts += [f"report: {slo['report']}"] if slo.get("report") else []
    return ", ".join(parts) or "the last audit said nothing"


def _event_lines(events: Sequence[Mapping[str, Any]], now_ms: int, width: int) -> Iterator[str]:
    yield "events"
    rows = [(ago(each["time"], now_ms), str(each["type"]), str(each["reason"])) for each in events]
    for line, each in zip(columns(rows), events, strict=True):
        times = f" (x{each['count']})" if each["count"] > 1 else ""
        head = f"  {line.ljust(max(map(len, columns(rows))))}   "
        room = max(20, width - len(head))
        first, *rest = textwrap.wrap(f"{each['note']}{times}", room, break_on_hyphens=False) or [""]
        yield f"{head}{first}"
        yield from (f"{' ' * len(head)}{more}" for more in rest)


def _labelled(label: str, text: str, width: int) -> list[str]:
    first = f"{label:<{_LABEL_WIDTH}}"
    return textwrap.wrap(
        text,
        max(40, width),
        initial_indent=first,
        subsequent_indent=" " * _LABEL_WIDTH,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(40, width), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def number(value: object) -> str:
    """Return `12,345`; a dash for an unknown number."""
    return f"{value:,}" if isinstance(value, int) else "-"


def count(value: object, noun: str) -> str:
    """Return `1 relay`, `2 relays`."""
    return f"{number(value)} {noun}" if value == 1 else f"{number(value)} {noun}s"


def ago(instant: object, now_ms: int) -> str:
    """Return `12s` or `3h5m` for a time as Kubernetes writes it; a dash for none."""
    at_ms = instant_ms(instant)
    return "-" if at_ms is None else span(now_ms - at_ms)


def distance(instant: object, now_ms: int) -> str:
    """Return `in 12s`, or `3m ago`."""
    at_ms = instant_ms(instant)
    if at_ms is None:
        return "-"
    return f"in {span(at_ms - now_ms)}" if at_ms > now_ms else f"{span(now_ms - at_ms)} ago"


def span(span_ms: int) -> str:
    """Return the two largest units of a span."""
    seconds = max(0, span_ms) // 1_000
    for place, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            smaller, small = (*_UNITS, (1, "s"))[place + 1]
            rest = seconds % size // smaller
            return f"{seconds // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{seconds}s"


def instant_ms(text: object) -> int | None:
    """Return epoch milliseconds; None for something else than a time."""
    try:
        return round(datetime.fromisoformat(str(text)).timestamp() * 1_000)
    except ValueError:
        return None


def columns(rows: Sequence[tuple[str, ...]], gap: str = "   ") -> list[str]:
    """Align rows: the cells of each line begin below each other."""
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [gap.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
