"""One DelayTopic: how late, what is due, how many relays, and what they wait for."""

from __future__ import annotations

from typing import Final

from charts.tools.dashboards.panels import Dashboard, Query, heat_map, lines, number

_ONE: Final = 'delaytopic_namespace="$namespace", delaytopic_name="$name"'
_LED: Final = "and on (instance) delaytopic_operator_leader == 1"
_RATE: Final = "$__rate_interval"


def _quantile(share: str, metric: str) -> Query:
    buckets = f"sum by (le) (rate({metric}_bucket{{{_ONE}}}[{_RATE}]))"
    return Query(f"histogram_quantile({share}, {buckets})", f"{share}")


def _led(metric: str, labels: str, matching: str = "") -> str:
    """Return what the operator that leads says of the SLO; a push gateway serves the same names."""
    return f"max by ({labels}) ({metric}{{{_ONE}{', ' if matching else ''}{matching}}} {_LED})"


DELAY_TOPIC: Final = Dashboard(
    uid="delaytopic-one",
    title="delaytopic / DelayTopic",
    text="One DelayTopic, from its relays, its operator and its audit.",
    variables=(
        ("delaytopic_namespace", "delaytopic_pending_records"),
        ("delaytopic_name", 'delaytopic_pending_records{delaytopic_namespace="$namespace"}'),
    ),
    rows=(
        (
            number("Pending", "Taken in and not yet delivered.", Query(f"sum(delaytopic_pending_records{{{_ONE}}})")),
            number("Overdue", "Due and not yet delivered.", Query(f"sum(delaytopic_overdue_records{{{_ONE}}})")),
            number(
                "Oldest overdue",
                "How long ago the oldest overdue record was due.",
                Query(f"max(delaytopic_oldest_overdue_seconds{{{_ONE}}})"),
                unit="s",
            ),
            number(
                "Next due in",
                "Until the nearest due time; empty when nothing is pending.",
                Query(f"min(delaytopic_next_due_timestamp_seconds{{{_ONE}}}) - time()"),
                unit="s",
            ),
            number(
                "Not taken in",
                "Records of the source topic that no relay has read.",
                Query(f"sum(delaytopic_ingest_lag_records{{{_ONE}}})"),
            ),
            number(
                "Failed partitions",
                "Source partitions that are not delivered.",
                Query(f'sum(delaytopic_shards{{{_ONE}, state="Failed"}})'),
                good="zero",
            ),
        ),
        (
            heat_map(
                "Lateness",
                "Sent minus due: how many records were how late. One warm band near the bottom is health.",
                Query(f"sum by (le) (increase(delaytopic_lateness_seconds_bucket{{{_ONE}}}[{_RATE}]))", "{{le}}"),
                unit="s",
            ),
        ),
        (
            lines(
                "Lateness, shares of the records",
                "Half, 99 of 100, 999 of 1000 records were at most this late.",
                *(_quantile(share, "delaytopic_lateness_seconds") for share in ("0.5", "0.99", "0.999")),
                unit="s",
            ),
            lines(
                "Due ahead, and what can be delivered",
                "The busiest second within the look-ahead against what the relays deliver while they are busy. "
                "Above it, records will be late.",
                Query(f"delaytopic_operator_forecast_peak_rate{{{_ONE}}} {_LED}", "due in the busiest second ahead"),
                Query(f"sum(delaytopic_busy_records_per_second{{{_ONE}}})", "relays, while busy"),
                Query(f"sum(rate(delaytopic_delivered_records_total{{{_ONE}}}[{_RATE}]))", "delivered"),
                unit="ops",
            ),
        ),
        (
            lines(
                "Relays",
                "Wanted by the operator, and running.",
                Query(f"delaytopic_operator_desired_replicas{{{_ONE}}} {_LED}", "wanted"),
                Query(f"count(delaytopic_memory_bytes{{{_ONE}}})", "running"),
            ),
            lines(
                "Lateness to come",
                "What the operator expects, with as many relays as there may be.",
                Query(f"delaytopic_operator_forecast_lateness_seconds{{{_ONE}}} {_LED}", "expected"),
                unit="s",
            ),
        ),
        (
            lines(
                "Backlog",
                "Pending, overdue, and not taken in.",
                Query(f"sum(delaytopic_pending_records{{{_ONE}}})", "pending"),
                Query(f"sum(delaytopic_overdue_records{{{_ONE}}})", "overdue"),
                Query(f"sum(delaytopic_ingest_lag_records{{{_ONE}}})", "not taken in"),
            ),
            lines(
                "Partitions by state",
                "Recovering and Replaying pass after a change of relays; Paused is on purpose; Failed is an alert.",
                Query(f"sum by (state) (delaytopic_shards{{{_ONE}}})", "{{state}}"),
            ),
        ),
        (
            lines(
                "Commands and dead letters",
                "Schedules replaced, withdrawn, or asked for too late; missed times of what recurs; records that could "
                "not be delivered.",
                Query(f"sum(rate(delaytopic_superseded_records_total{{{_ONE}}}[{_RATE}]))", "replaced"),
                Query(f"sum(rate(delaytopic_cancelled_records_total{{{_ONE}}}[{_RATE}]))", "cancelled"),
                Query(f"sum(rate(delaytopic_cancels_too_late_total{{{_ONE}}}[{_RATE}]))", "cancelled too late"),
                Query(f"sum(rate(delaytopic_missed_slots_total{{{_ONE}}}[{_RATE}]))", "missed times"),
                Query(
                    f"sum by (reason) (rate(delaytopic_dead_letter_records_total{{{_ONE}}}[{_RATE}]))",
                    "dead: {{reason}}",
                ),
                unit="ops",
            ),
            lines(
                "Commit and backend, 99 of 100",
                "How long a commit to Kafka takes, and a write to the backend. Slow ones make records late.",
                Query(_quantile("0.99", "delaytopic_commit_seconds").expression, "commit"),
                Query(_quantile("0.99", "delaytopic_backlog_write_seconds").expression, "write to the backend"),
                unit="s",
            ),
        ),
        (
            lines(
                "Recoveries and backend errors",
                "Why partitions were read again from what is committed; times that the backend did not answer.",
                Query(f"sum by (cause) (increase(delaytopic_recoveries_total{{{_ONE}}}[{_RATE}]))", "{{cause}}"),
                Query(f"sum(increase(delaytopic_backlog_errors_total{{{_ONE}}}[{_RATE}]))", "backend did not answer"),
            ),
            lines(
                "Memory of schedules",
                "By relay; reading pauses at its limit.",
                Query(f"delaytopic_memory_bytes{{{_ONE}}}", "{{instance}}"),
                unit="bytes",
            ),
        ),
        (
            lines(
                "Objectives, by the last audit",
                "The share of records that was good, by objective.",
                Query(_led("delaytopic_slo_attainment_ratio", "objective"), "{{objective}}"),
                unit="percentunit",
            ),
            lines(
                "Burn rate",
                "How fast the error budget is spent: 1 spends it exactly within the objective's window. By relays over "
                "the last five minutes, and by the last audit over longer times.",
                Query(f"max by (objective) (delaytopic:slo_burn_rate:5m{{{_ONE}}})", "{{objective}}, relays, 5m"),
                Query(_led("delaytopic_slo_burn_rate", "objective, window"), "{{objective}}, audit, {{window}}"),
            ),
        ),
        (
            lines(
                "Broken promises, by the last audit",
                "Records that were lost, early or twice: within the window, and those that it found newly.",
                Query(_led("delaytopic_slo_bad_records", "objective", 'objective!~"Timely(-.*)?"'), "{{objective}}"),
                Query(_led("delaytopic_slo_newly_bad_records", "objective"), "{{objective}}, newly found"),
            ),
            lines(
                "Lateness, by the last audit",
                "Arrival minus deadline within the window, and what counts as late.",
                Query(_led("delaytopic_slo_lateness_seconds", "quantile"), "{{quantile}}"),
                Query(_led("delaytopic_slo_threshold_seconds", "objective"), "{{objective}}: late from here on"),
                unit="s",
            ),
        ),
        (
            number(
                "Error budget left",
                "By the last audit, over the objective's own window; below zero it is overspent.",
                Query(_led("delaytopic_slo_budget_remaining_ratio", "objective"), "{{objective}}"),
                unit="percentunit",
            ),
            number(
                "Last audit",
                "Since the last audit, whether it could judge or not.",
                Query(f"time() - {_led('delaytopic_slo_generated_timestamp_seconds', 'delaytopic_name')}"),
                unit="s",
            ),
            number(
                "Graded up to",
                "Since the end of the time that is graded.",
                Query(f"time() - {_led('delaytopic_slo_window_end_timestamp_seconds', 'delaytopic_name')}"),
                unit="s",
            ),
        ),
    ),
)
