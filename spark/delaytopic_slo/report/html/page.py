"""A report as one self-contained HTML page: no script, no link, nothing to load. Pure, from report.json alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

from delaytopic_slo.model.report import Counts, FindingList, Objective, ObjectiveName, Reading, Report, Verdict
from delaytopic_slo.report.html.charts import attainment_chart, budget_bar, lateness_chart
from delaytopic_slo.report.html.text import NOTHING, instant, instant_ms, milliseconds, number, share

_VERDICTS = {
    Verdict.MET: "Objectives met",
    Verdict.MISSED: "Objectives missed",
    Verdict.CANNOT_JUDGE: "Could not judge",
}
_NAMES = {
    ObjectiveName.TIMELY: "on time",
    ObjectiveName.COMPLETE: "complete",
    ObjectiveName.UNIQUE: "once",
    ObjectiveName.NOT_EARLY: "not early",
}
_FAULT_COLUMNS = ("late", "lost", "duplicated", "early", "misdirected", "unwanted", "unknown")
_OPEN_UP_TO = 20


def html_page(report: Report) -> str:
    """The whole page."""
    title = f"{report.delay_topic}: {_VERDICTS[report.verdict].lower()}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in _parts(report) if part)
        + "\n</main>\n</body>\n</html>\n"
    )


@cache
def _style() -> str:
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def _parts(report: Report) -> Iterable[str]:
    yield _banner(report)
    if report.window is None:
        return
    timely = next(each for each in report.objectives if each.name is ObjectiveName.TIMELY)
    goal = float(timely.objective.rstrip("%")) / 100
    yield f'<section class="cards">{"".join(_card(each) for each in report.objectives)}</section>'
    yield _notes(report.notes)
    yield f"<h2>On time, against the objective of {escape(timely.objective)}</h2>{attainment_chart(report, goal)}"
    yield _budget(report)
    yield _lateness(report)
    yield _counts(report)
    yield _worst(report)
    yield _found(report.findings, report.source)
    yield _partitions(report)
    if report.reading is not None:
        yield _reading(report.reading)
    yield _footer(report)


def _banner(report: Report) -> str:
    window = report.window
    when = f"deadlines from {instant(window.from_ms)} to {instant(window.to_ms)} UTC" if window is not None else ""
    topics = f"{escape(report.source)} \u2192 {escape(report.target)}" if report.source else ""
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report.reasons)
    context = " \u00b7 ".join(part for part in (topics, when) if part)
    return (
        f'<header class="banner {report.verdict}"><h1>{escape(report.delay_topic)}</h1>'
        f"<b>{_VERDICTS[report.verdict]}</b><p>{escape(report.sentence)}</p>"
        + (f"<ul>{reasons}</ul>" if reasons else "")
        + f'<p class="soft small">{context}</p></header>'
    )


def _card(objective: Objective) -> str:
    return (
        f'<div class="card"><div class="name"><span>{_NAMES[objective.name]}</span>'
        f'<span class="tag {objective.verdict}">{_verdict_text(objective)}</span></div>'
        f'<div class="value">{escape(objective.attainment or NOTHING)}</div>'
        f'<div class="soft small">of {number(objective.good + objective.bad)}, objective '
        f'{escape(objective.objective)}</div><div class="small">{escape(objective.sentence)}</div></div>'
    )


def _verdict_text(objective: Objective) -> str:
    return {Verdict.MET: "met", Verdict.MISSED: "missed"}.get(objective.verdict, "not promised")


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<h2>Before you trust the figures</h2><ul class="small">{items}</ul>' if items else ""


def _budget(report: Report) -> str:
    budget = report.budget
    if budget is None:
        return ""
    left = "nothing was due" if budget.remaining is None else f"{budget.remaining * 100:.1f}% left"
    if budget.remaining is not None and budget.remaining < 0:
        left = f"overspent by {-budget.remaining * 100:,.1f}%"
    rows = [[b.window, number(b.total), number(b.bad), _rate(b.rate)] for b in report.burn_rates]
    return (
        f'<h2>Error budget over {escape(budget.window)}</h2><div class="card"><div class="value">{left}</div>'
        f"{budget_bar(budget.remaining)}<p class='small soft'>{number(budget.spent)} of {number(budget.total)} records"
        f" were late or lost, {budget.allowed:,.1f} may be; counted since {instant(budget.from_ms)} UTC</p></div>"
        f"<p></p>{_table(['over', 'due', 'late or lost', 'burn rate'], rows)}"
    )


def _rate(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate:.2f}"


def _lateness(report: Report) -> str:
    of = report.lateness
    if of is None:
        return ""
    names = (("p50", of.p50_ms), ("p90", of.p90_ms), ("p99", of.p99_ms), ("p99.9", of.p999_ms), ("latest", of.max_ms))
    tiles = "".join(f"<div>{name}<b>{milliseconds(value)}</b></div>" for name, value in names)
    allowed = milliseconds(report.lateness_objective_ms)
    return (
        f'<h2>Lateness</h2><div class="tiles">{tiles}</div><p></p>{lateness_chart(report)}'
        f'<p class="small soft">Arrival minus deadline. The dashed line is what is allowed: {allowed}.</p>'
    )


def _counts(report: Report) -> str:
    counts = report.counts or Counts()
    names = ("asked", "delivered", "on_time", *_FAULT_COLUMNS, "cancelled", "replaced", "dead_lettered")
    tiles = "".join(
        f"<div>{name.replace('_', ' ')}<b>{number(getattr(counts, name))}</b></div>"
        for name in names
        if getattr(counts, name) or name in ("asked", "delivered", "lost")
    )
    return f'<h2>What became of the records</h2><div class="tiles">{tiles}</div>'


def _worst(report: Report) -> str:
    if not report.worst_minutes:
        return ""
    rows = [
        [instant(w.minute_ms), number(w.counts.asked), *_faults(w.counts), milliseconds(w.latest_ms)]
        for w in report.worst_minutes
    ]
    return f"<h2>The worst minutes</h2>{_table(['minute (UTC)', 'asked', *_FAULT_COLUMNS, 'latest'], rows, bad_from=2)}"


def _faults(counts: Counts) -> list[str]:
    return [number(getattr(counts, name)) for name in _FAULT_COLUMNS]


def _found(findings: Sequence[FindingList], source: str) -> str:
    if not findings:
        return ""
    head = f"<h2>Records, by their coordinates on {escape(source)}</h2>"
    return head + "".join(_finding(finding) for finding in findings)


def _finding(found: FindingList) -> str:
    rows = [
        [
            *(f"{each.partition}:{each.offset}", instant_ms(each.deadline_ms), milliseconds(each.lateness_ms)),
            *(str(each.copies), _place(each.topic, each.at_partition, each.at_offset), each.reason or NOTHING),
        ]
        for each in found.listed
    ]
    more = f", the first {len(rows)} of them" if 0 < len(rows) < found.records else ""
    young = f", {number(found.provisional)} of them provisional" if found.provisional else ""
    names = ["partition:offset", "deadline (UTC)", "late by", "arrivals", "first arrival", "reason"]
    is_open = " open" if found.records <= _OPEN_UP_TO else ""
    head = f"<b>{escape(found.finding)}</b>: {number(found.records)}{young}{more}"
    if not rows:
        return f"<p>{head}</p>"
    return f"<details{is_open}><summary>{head}</summary>{_table(names, rows)}</details>"


def _place(topic: str | None, partition: int | None, offset: int | None) -> str:
    if offset is None:
        return NOTHING
    return f"{topic or 'dead letters'} {partition}:{offset}"


def _partitions(report: Report) -> str:
    if not report.partitions:
        return ""
    rows = [
        [str(p.partition), number(p.counts.asked), share(p.counts.on_time, p.counts.delivered), *_faults(p.counts)]
        for p in report.partitions
    ]
    names = ["source partition", "asked", "on time", *_FAULT_COLUMNS]
    return f"<h2>By source partition</h2>{_table(names, rows, bad_from=3)}"


def _reading(reading: Reading) -> str:
    topics = [[t.topic, str(t.role), number(t.records), number(t.foreign)] for t in reading.topics]
    ranges = [[r.topic, str(r.partition), str(r.start), str(r.end)] for r in reading.ranges]
    clocks = [[c.topic, str(c.partition), f"{c.least_ms} ms"] for c in reading.clocks]
    clock_names = ["target", "partition", "least of append minus sent"]
    return (
        f"<h2>What run {reading.run} read</h2>{_table(['topic', 'role', 'records', 'not of this source'], topics)}"
        f"<details><summary>{len(ranges)} ranges of offsets</summary>"
        f"{_table(['topic', 'partition', 'from', 'up to, without'], ranges)}</details>"
        f"<details><summary>clocks of {len(clocks)} target partitions</summary>{_table(clock_names, clocks)}</details>"
    )


def _footer(report: Report) -> str:
    planned = f"judged as of {instant_ms(report.reading.planned_at_ms)} UTC, " if report.reading is not None else ""
    return f"<footer>{planned}report made {instant_ms(report.generated_at_ms)} UTC by delaytopic slo</footer>"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]], *, bad_from: int | None = None) -> str:
    """Cells from column `bad_from` on stand out unless they are zero, but for times."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)

    def cell(place: int, text: str) -> str:
        stands_out = bad_from is not None and place >= bad_from and text != "0" and text.replace(",", "").isdigit()
        kind = "bad" if stands_out else "soft" if bad_from is not None and text == "0" else ""
        return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"

    body = "".join(f"<tr>{''.join(cell(place, text) for place, text in enumerate(row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
