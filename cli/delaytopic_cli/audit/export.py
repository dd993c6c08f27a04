"""`delaytopic audit export`: the objectives of DelayTopics for other tools. But for the command itself, pure."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from typing import Any, Final

import click

from delaytopic_api import Duration, Settings
from delaytopic_api.documents import TIMELY, LatenessObjective
from delaytopic_api.loading import write_yaml
from delaytopic_api.relay import lateness_bucket
from delaytopic_api.values import Calendar
from delaytopic_cli.audit.documents import audited_topics
from delaytopic_cli.audit.options import file_option
from delaytopic_process.errors import InputError

Document = dict[str, Any]

OPENSLO: Final = "openslo"
SLOTH: Final = "sloth"
LONGEST_LABEL: Final = 63
_LATENESS: Final = "delaytopic_lateness_seconds"
_LARGEST_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000))
_PERIODS: Final = {Calendar.DAY: "1d", Calendar.WEEK: "1w", Calendar.MONTH: "1M"}
_A_FIRST_MONDAY: Final = "2024-01-01 00:00:00"
"""Days, weeks and months begin with it."""
_WINDOW: Final = "[{{.window}}]"
"""Sloth puts its own windows there."""


@click.command(short_help="Write the objectives for OpenSLO's or Sloth's tools.")
@file_option
@click.option("--name", metavar="NAMESPACE/NAME", help="Only this DelayTopic of the file.")
@click.option("--openslo", "form", flag_value=OPENSLO, help="As OpenSLO v1 documents.")
@click.option("--sloth", "form", flag_value=SLOTH, help="As Sloth's prometheus/v1 documents.")
def export(file: str, name: str | None, form: str | None) -> None:
    """Write how many records must not be late, with queries on the metrics of relays.

    That nothing is lost, early or twice is no part of it: only the audit sees it, and it has no error budget. Relays
    count lateness in buckets: late is what lies above the nearest edge that is not below the objective.

    \b
    Examples:
      delaytopic audit export -f examples/reminders.yaml --sloth > slo.yaml && sloth generate -i slo.yaml
      kubectl get delaytopics,delayclasses -A -o yaml | delaytopic audit export -f - --openslo
    """
    if form is None:
        raise InputError("choose one of --openslo and --sloth")
    made = openslo_documents if form == OPENSLO else sloth_documents
    documents = [document for settings in audited_topics(file, name) for document in made(_sayable(settings))]
    click.echo(write_yaml(documents), nl=False)


def _sayable(settings: Settings) -> Settings:
    """Return the settings; raises InputError where they have what neither form has a word for."""
    if settings.slo.exclusions:
        raise InputError(
            f"{settings.namespace}/{settings.name}: slo.exclusions: neither OpenSLO nor Sloth has exclusions; export a"
            " copy without them, and silence alerts for that time"
        )
    return settings


def openslo_documents(settings: Settings) -> list[Document]:
    """Return an SLO for each objective of lateness, as OpenSLO v1 has it; raises InputError."""
    return [_openslo_document(settings, each) for each in settings.slo.lateness_objectives]


def _openslo_document(settings: Settings, of: LatenessObjective) -> Document:
    name = _name(settings, f"-{of.name.lower()}")
    good, total = f"sum({_good(settings, of)})", f"sum({_total(settings)})"
    ratio = {"counter": True, "good": _metric(good), "total": _metric(total)}
    objective = {"displayName": f"at most {of.lateness} late", "target": float(_target(settings, of))}
    return {
        "apiVersion": "openslo/v1",
        "kind": "SLO",
        "metadata": {"name": name, "displayName": f"{settings.namespace}/{settings.name} {_title(of)}"},
        "spec": {
            "description": _description(settings, of),
            "service": _name(settings),
            "indicator": {"metadata": {"name": name}, "spec": {"ratioMetric": ratio}},
            "timeWindow": [_time_window(settings)],
            "budgetingMethod": "Occurrences",
            "objectives": [objective],
        },
    }


def sloth_documents(settings: Settings) -> list[Document]:
    """Return the SLOs as Sloth's prometheus/v1 has them, which leaves the window to its command; raises InputError."""
    if settings.slo.calendar is not None:
        raise InputError(
            f"{settings.namespace}/{settings.name}: slo.calendar: Sloth has rolling windows only; export it --openslo"
        )
    return [
        {
            "version": "prometheus/v1",
            "service": _name(settings),
            "labels": {"delaytopic_namespace": settings.namespace, "delaytopic_name": settings.name},
            "slos": [_sloth_slo(settings, each) for each in settings.slo.lateness_objectives],
        }
    ]


def _sloth_slo(settings: Settings, of: LatenessObjective) -> Document:
    good, total = f"sum(rate({_good(settings, of)}{_WINDOW}))", f"sum(rate({_total(settings)}{_WINDOW}))"
    return {
        "name": of.name.lower(),
        "objective": float(_target(settings, of) * 100),
        "sli": {"events": {"error_query": f"({total} - {good})", "total_query": total}},
        "alerting": {
            "name": "DelayTopicLate",
            "annotations": {"summary": f"No longer met soon: {_description(settings, of)}"},
            "page_alert": {"labels": {"severity": "critical"}},
            "ticket_alert": {"labels": {"severity": "warning"}},
        },
    }


def _title(of: LatenessObjective) -> str:
    return "on time" if of.name == TIMELY else f"within {of.lateness}"


def _name(settings: Settings, ending: str = "") -> str:
    """Return a label as in DNS, which is what OpenSLO's names are: too long a one is cut, and told by its digest."""
    name = f"{settings.namespace}-{settings.name}{ending}"
    digest = sha256(f"{settings.namespace}/{settings.name}".encode()).hexdigest()[:8]
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 9 - len(ending)]}-{digest}{ending}"


def _description(settings: Settings, of: LatenessObjective) -> str:
    return f"Records of {settings.source.topic} arrive on {settings.target.topic} at most {of.lateness} late."


def _good(settings: Settings, of: LatenessObjective) -> str:
    return f'{_LATENESS}_bucket{{{_labels(settings)}, le="{lateness_bucket(of.lateness.ms)}"}}'


def _total(settings: Settings) -> str:
    return f"{_LATENESS}_count{{{_labels(settings)}}}"


def _labels(settings: Settings) -> str:
    return f'delaytopic_namespace="{settings.namespace}", delaytopic_name="{settings.name}"'


def _metric(query: str) -> Document:
    return {"metricSource": {"type": "Prometheus", "spec": {"query": query}}}


def _target(settings: Settings, of: LatenessObjective) -> Fraction:
    if of.objective.ratio == 1:
        raise InputError(
            f"{settings.namespace}/{settings.name}: an objective of 100% has no error budget, and these tools take"
            " none; the operator's alert DelayPromiseBroken is for it"
        )
    return of.objective.ratio


def _time_window(settings: Settings) -> Document:
    calendar = settings.slo.calendar
    if calendar is None:
        return {"duration": _shorthand(settings.slo.window), "isRolling": True}
    begin = {"startTime": _A_FIRST_MONDAY, "timeZone": str(settings.slo.time_zone or "UTC")}
    return {"duration": _PERIODS[calendar], "calendar": begin, "isRolling": False}


def _shorthand(window: Duration) -> str:
    """Return OpenSLO's shorthand, which has one unit."""
    for unit, unit_ms in _LARGEST_UNITS:
        if window.ms % unit_ms == 0:
            return f"{window.ms // unit_ms}{unit}"
    raise InputError(f"slo.window: {window} is no whole number of minutes, which OpenSLO needs")
