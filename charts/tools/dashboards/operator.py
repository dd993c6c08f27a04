"""The operator: does one lead, does it see everything, does it keep up."""

from __future__ import annotations

from typing import Final

from charts.tools.dashboards.panels import Dashboard, Query, lines, number

_RATE: Final = "$__rate_interval"

OPERATOR: Final = Dashboard(
    uid="delaytopic-operator",
    title="delaytopic / Operator",
    text="The operators of delaytopic. Relays deliver on without them.",
    rows=(
        (
            number("Leaders", "One, and only one.", Query("sum(delaytopic_operator_leader)"), good="not zero"),
            number("Waiting", "DelayTopics due for a pass.", Query("sum(delaytopic_operator_queue_depth)")),
            number(
                "Longest wait",
                "How long the first of them has been waiting.",
                Query("max(delaytopic_operator_queue_oldest_age_seconds)"),
                unit="s",
            ),
            number(
                "Longest pass",
                "A pass that runs for minutes is stuck.",
                Query("max(time() - delaytopic_operator_reconcile_in_progress_start_seconds) or vector(0)"),
                unit="s",
            ),
            number(
                "Last resync",
                "Since everything was listed.",
                Query("max((time() - delaytopic_operator_resync_last_seconds) and delaytopic_operator_leader == 1)"),
                unit="s",
            ),
            number(
                "Memory",
                "The greatest of all operators.",
                Query("max(process_resident_memory_bytes and on (instance) delaytopic_operator_leader)"),
                unit="bytes",
            ),
        ),
        (
            lines(
                "Passes",
                "By result; what is not Success is tried again, later each time.",
                Query(f"sum by (result) (rate(delaytopic_operator_reconcile_total[{_RATE}]))", "{{result}}"),
                unit="ops",
            ),
            lines(
                "Length of passes",
                "Half, and 99 of 100 passes took at most this long.",
                *(
                    Query(
                        f"histogram_quantile({share}, sum by (le) "
                        f"(rate(delaytopic_operator_reconcile_seconds_bucket[{_RATE}])))",
                        share,
                    )
                    for share in ("0.5", "0.99")
                ),
                unit="s",
            ),
        ),
        (
            lines(
                "Silence of watches",
                "Since the last sign of life, by resource; the API server ends each watch after four minutes.",
                Query("max by (resource) (time() - delaytopic_operator_watch_last_event_seconds)", "{{resource}}"),
                unit="s",
            ),
            lines(
                "Leading",
                "1 in the operator that leads.",
                Query("delaytopic_operator_leader", "{{instance}}"),
            ),
        ),
        (
            lines(
                "Requests to the API server",
                "By verb and code; in a quiet cluster there are hardly any writes.",
                Query(
                    f"sum by (verb, code) (rate(delaytopic_operator_k8s_request_seconds_count[{_RATE}]))",
                    "{{verb}} {{code}}",
                ),
                unit="ops",
            ),
            lines(
                "Calls of Kafka's admin interface, 99 of 100",
                "By operation.",
                Query(
                    "histogram_quantile(0.99, sum by (le, op) "
                    f"(rate(delaytopic_operator_kafka_admin_seconds_bucket[{_RATE}])))",
                    "{{op}}",
                ),
                unit="s",
            ),
        ),
        (
            lines(
                "Set right",
                "Objects that somebody had changed. A steady rate is a quarrel with another controller.",
                Query(f"sum by (object) (rate(delaytopic_operator_drift_corrections_total[{_RATE}]))", "{{object}}"),
                unit="ops",
            ),
            lines(
                "Objects known",
                "By resource.",
                Query("max by (resource) (delaytopic_operator_objects)", "{{resource}}"),
            ),
        ),
        (
            lines(
                "Conditions that do not hold",
                "How many DelayTopics, by condition; Reconciling, Stalled, Paused and Draining are meant to be False.",
                Query(
                    'count by (type) (delaytopic_operator_condition{status!="True", '
                    'type!~"Reconciling|Stalled|Paused|Draining"} == 1 '
                    "and on (instance) delaytopic_operator_leader == 1)",
                    "{{type}}",
                ),
            ),
            lines(
                "Need a person, or are changing",
                "How many DelayTopics.",
                Query(
                    'count by (type) (delaytopic_operator_condition{status="True", '
                    'type=~"Reconciling|Stalled|Paused|Draining"} == 1 '
                    "and on (instance) delaytopic_operator_leader == 1)",
                    "{{type}}",
                ),
            ),
        ),
        (
            lines(
                "RecurringRecords",
                "How many, by the reason of Ready. All but Written, Ended and Suspended wait for somebody.",
                Query(
                    "sum by (reason) (delaytopic_operator_recurring_records "
                    "and on (instance) delaytopic_operator_leader == 1)",
                    "{{reason}}",
                ),
            ),
        ),
    ),
)
