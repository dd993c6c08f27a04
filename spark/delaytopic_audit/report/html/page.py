"""A report as one self-contained HTML page: no script, no link, nothing to load. Pure, from report.json alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from delaytopic_audit.model.report import Counts, Objective, ObjectiveName, Report, Verdict
from delaytopic_audit.model.words import FAULTS
from delaytopic_audit.report.html.charts import BOX, attainment_chart, budget_left, lateness_chart
from delaytopic_audit.report.text import NOTHING, instant, instant_ms, milliseconds, number, share

_VERDICTS = {
    Verdict.MET: "Objectives met",
    Verdict.MISSED: "Objectives missed",
    Verdict.CANNOT_JUDGE: "Could not judge",
}
_OBJECTIVE_VERDICTS = {Verdict.MET: "met", Verdict.MISSED: "missed", Verdict.NOT_PROMISED: "not promised"}
_OBJECTIVE_NAMES: Mapping[str, str] = {
    ObjectiveName.TIMELY: "on time",
    ObjectiveName.COMPLETE: "complete",
    ObjectiveName.UNIQUE: "once",
    ObjectiveName.NOT_EARLY: "not early",
    ObjectiveName.TOLD: "told",
}
_FAULT_COLUMNS = ("late", "lost", "duplicated", "early", "misdirected", "unwanted", "unknown")
_TOLD_COLUMNS = ("untold", "told_twice", "untrue")
"""Faults of the topic of outcomes, which few DelayTopics have."""
_SLOT_COLUMNS = ("chains_broken", "slots_skipped", "slots_repeated")
"""Faults of what recurs, which few have either."""
_OUTCOME_COLUMNS = (
    *("asked", "delivered", "on_time", *_FAULT_COLUMNS, "cancelled", "replaced", "dead_lettered"),
    *("told", *_TOLD_COLUMNS, "retold", "slots", "slots_missed", *_SLOT_COLUMNS),
)
_OPEN_UP_TO = 20
_FIRST_OF = 3
"""Records that the opening names of each fault."""


def html_page(report: Report) -> str:
    """Render the whole page."""
    drawings = _drawings(report) if report.window is not None else {}
    return (
        environment().get_template("page.html.j2").render(report=report, verdict=_VERDICTS[report.verdict], **drawings)
    )


def _drawings(report: Report) -> dict[str, Any]:
    """Return the parts of a report with a verdict that the template draws."""
    timely = next(each for each in report.objectives if each.name == ObjectiveName.TIMELY)
    tells = any(each.name == ObjectiveName.TOLD for each in report.objectives)
    counts = report.counts or Counts()
    return {
        "objective": timely.objective,
        "attainment": attainment_chart(report, float(timely.objective.rstrip("%")) / 100),
        "lateness": lateness_chart(report),
        "counts": counts,
        # What an objective with a budget allows for has broken nothing.
        "broke": [each for each in report.findings if report.verdict is Verdict.MISSED and each.finding in FAULTS],
        "fault_columns": _FAULT_COLUMNS + (_TOLD_COLUMNS if tells else ()) + (_SLOT_COLUMNS if counts.slots else ()),
    }


def _objective_name(objective: Objective) -> str:
    known = _OBJECTIVE_NAMES.get(objective.name)
    return known if known is not None else f"at most {milliseconds(objective.lateness_ms)} late"


@cache
def environment() -> Environment:
    """Return what renders the pages of this room."""
    environment = Environment(
        # Names of topics and reasons are written by others: the template escapes everything.
        autoescape=True,
        loader=PackageLoader("delaytopic_audit.report", "html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "instant": instant,
        "instant_ms": instant_ms,
        "milliseconds": milliseconds,
        "number": number,
    }
    environment.globals |= {
        "box": BOX,
        "budget_left": budget_left,
        "first_of": _FIRST_OF,
        "nothing": NOTHING,
        "objective_name": _objective_name,
        "objective_verdicts": _OBJECTIVE_VERDICTS,
        "open_up_to": _OPEN_UP_TO,
        "outcome_columns": _OUTCOME_COLUMNS,
        "share": share,
    }
    return environment
