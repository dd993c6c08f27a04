"""All DelayTopics at a glance: is anything the matter, and with which."""

from __future__ import annotations

from typing import Final

from charts.tools.dashboards.panels import Dashboard, Query, lines, number, table

_BY: Final = "by (delaytopic_namespace, delaytopic_name)"
_EACH: Final = "{{delaytopic_namespace}}/{{delaytopic_name}}"
_LED: Final = "and on (instance) delaytopic_operator_leader == 1"


def _conditions(selector: str) -> str:
    return f"count(delaytopic_operator_condition{{{selector}}} == 1 {_LED}) or vector(0)"


FLEET: Final = Dashboard(
    uid="delaytopic-fleet",
    title="delaytopic / Fleet",
    text="All DelayTopics: what waits, what is late, what needs somebody.",
    rows=(
        (
            number(
                "Ready",
                "DelayTopics that take records in and deliver them.",
                Query(_conditions('type="Ready", status="True"')),
            ),
            number(
                "Not ready",
                "DelayTopics whose condition Ready is False or Unknown.",
                Query(_conditions('type="Ready", status!="True"')),
                good="zero",
            ),
            number(
                "Late",
                "DelayTopics whose records do not arrive within their precision.",
                Query(_conditions('type="DeliveringOnTime", status="False"')),
                good="zero",
            ),
            number("Pending", "Records taken in and not yet delivered.", Query("sum(delaytopic_pending_records)")),
            number(
                "Overdue", "Of those, the ones whose due time has passed.", Query("sum(delaytopic_overdue_records)")
            ),
            number(
                "Oldest overdue",
                "How long ago the oldest overdue record was due: the earliest sign of trouble.",
                Query("max(delaytopic_oldest_overdue_seconds)"),
                unit="s",
            ),
        ),
        (
            table(
                "DelayTopics",
                "One line for each; sort by what you are looking for.",
                [
                    Query(f"sum {_BY} (delaytopic_pending_records)"),
                    Query(f"sum {_BY} (delaytopic_overdue_records)"),
                    Query(f"max {_BY} (delaytopic_oldest_overdue_seconds)"),
                    Query(f"sum {_BY} (delaytopic_ingest_lag_records)"),
                    Query(f"sum {_BY} (rate(delaytopic_delivered_records_total[5m]))"),
                    Query(f"count {_BY} (delaytopic_memory_bytes)"),
                ],
                {
                    "delaytopic_namespace": "Namespace",
                    "delaytopic_name": "DelayTopic",
                    "Value #A": "Pending",
                    "Value #B": "Overdue",
                    "Value #C": "Oldest overdue, s",
                    "Value #D": "Not taken in",
                    "Value #E": "Delivered, 1/s",
                    "Value #F": "Relays",
                },
            ),
        ),
        (
            lines(
                "Delivered",
                "Records sent and committed, the ten busiest DelayTopics.",
                Query(f"topk(10, sum {_BY} (rate(delaytopic_delivered_records_total[$__rate_interval])))", _EACH),
                unit="ops",
            ),
            lines(
                "Overdue",
                "Records whose due time has passed, the ten DelayTopics that have most.",
                Query(f"topk(10, sum {_BY} (delaytopic_overdue_records))", _EACH),
            ),
        ),
        (
            lines(
                "Lateness, 99 of 100 records",
                "Sent minus due, the ten latest DelayTopics.",
                Query(
                    "topk(10, histogram_quantile(0.99, sum by (le, delaytopic_namespace, delaytopic_name) "
                    "(rate(delaytopic_lateness_seconds_bucket[$__rate_interval]))))",
                    _EACH,
                ),
                unit="s",
            ),
            lines(
                "Dead letters",
                "Records that could not be delivered, by reason: producers to talk to.",
                Query(
                    "sum by (delaytopic_namespace, delaytopic_name, reason) "
                    "(rate(delaytopic_dead_letter_records_total[$__rate_interval])) > 0",
                    f"{_EACH} {{{{reason}}}}",
                ),
                unit="ops",
            ),
        ),
        (
            lines(
                "Error budget left",
                "By the last audit, over each objective's own window, the least of several; below zero: overspent.",
                Query(f"min {_BY} (delaytopic_slo_budget_remaining_ratio {_LED})", _EACH),
                unit="percentunit",
            ),
            lines(
                "Retained backlogs",
                "Records of DelayTopics that are gone; applying the same object again resumes them.",
                Query(f"delaytopic_operator_retained_backlog_messages {_LED}", _EACH),
            ),
        ),
    ),
)
