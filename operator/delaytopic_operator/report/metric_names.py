"""The operator's metrics as data: what is served, documented and named in dashboards has to agree with this table."""

from __future__ import annotations

from typing import Final, NamedTuple


class MetricName(NamedTuple):
    """One metric; `name` as Prometheus shows it, without the suffixes of counters and histograms' parts."""

    name: str
    type: str
    text: str
    labels: tuple[str, ...] = ()


DELAY_TOPIC: Final = ("delaytopic_namespace", "delaytopic_name")
"""Labels of series about one DelayTopic; the same as on the relays' metrics."""

RECONCILES: Final = MetricName("delaytopic_operator_reconcile", "counter", "Reconciliations, by result.", ("result",))
RECONCILE_SECONDS: Final = MetricName(
    "delaytopic_operator_reconcile_seconds", "histogram", "How long reconciliations take."
)
IN_PROGRESS: Final = MetricName(
    "delaytopic_operator_reconcile_in_progress_start_seconds",
    "gauge",
    "When a reconciliation that runs began, in seconds since 1970.",
    DELAY_TOPIC,
)
QUEUE_DEPTH: Final = MetricName(
    "delaytopic_operator_queue_depth", "gauge", "DelayTopics due for a reconciliation and waiting."
)
QUEUE_AGE: Final = MetricName(
    "delaytopic_operator_queue_oldest_age_seconds", "gauge", "How long the first of them has been waiting."
)
WATCH_EVENT: Final = MetricName(
    "delaytopic_operator_watch_last_event_seconds",
    "gauge",
    "Last sign of life of the watches of a resource, of the one that is silent for longest: an event or an answer, in "
    "seconds since 1970.",
    ("resource",),
)
RESYNC: Final = MetricName(
    "delaytopic_operator_resync_last_seconds",
    "gauge",
    "When everything was listed last, in seconds since 1970; 0: never.",
)
OBJECTS: Final = MetricName("delaytopic_operator_objects", "gauge", "Objects known, by resource.", ("resource",))
LEADER: Final = MetricName("delaytopic_operator_leader", "gauge", "1 in the operator that leads, 0 in the others.")
STOPPED_ROLLOUTS: Final = MetricName(
    "delaytopic_operator_stopped_rollout_delaytopics",
    "gauge",
    "DelayTopics in a row whose relays did not become ready: no others are started anew with this image.",
    ("image",),
)
DRIFT: Final = MetricName(
    "delaytopic_operator_drift_corrections", "counter", "Objects set right that somebody had changed.", ("object",)
)
KAFKA_SECONDS: Final = MetricName(
    "delaytopic_operator_kafka_admin_seconds", "histogram", "Calls of Kafka's admin interface.", ("op", "result")
)
KUBERNETES_SECONDS: Final = MetricName(
    "delaytopic_operator_k8s_request_seconds", "histogram", "Requests to the API server.", ("verb", "resource", "code")
)
CONDITION: Final = MetricName(
    "delaytopic_operator_condition",
    "gauge",
    "1 for the status that a condition has.",
    (*DELAY_TOPIC, "type", "status"),
)
DESIRED_REPLICAS: Final = MetricName(
    "delaytopic_operator_desired_replicas", "gauge", "How many relays the autoscaling wants.", DELAY_TOPIC
)
FORECAST_RATE: Final = MetricName(
    "delaytopic_operator_forecast_peak_rate", "gauge", "Most records due per second within the look-ahead.", DELAY_TOPIC
)
FORECAST_LATENESS: Final = MetricName(
    "delaytopic_operator_forecast_lateness_seconds",
    "gauge",
    "Lateness to come, with the relays there may be.",
    DELAY_TOPIC,
)
RETAINED: Final = MetricName(
    "delaytopic_operator_retained_backlog_messages",
    "gauge",
    "Records pending of a DelayTopic that is gone.",
    DELAY_TOPIC,
)
RECURRING_RECORDS: Final = MetricName(
    "delaytopic_operator_recurring_records",
    "gauge",
    "RecurringRecords of a namespace, by status and reason of their condition Ready.",
    ("delaytopic_namespace", "status", "reason"),
)

# Of the SLO: the audit's own files have the same names. Alerts take those of the operator that leads.
SLO_OBJECTIVE: Final = MetricName(
    "delaytopic_slo_objective_ratio", "gauge", "The share that has to be good.", (*DELAY_TOPIC, "objective")
)
SLO_THRESHOLD: Final = MetricName(
    "delaytopic_slo_threshold_seconds",
    "gauge",
    "Later than this is late; `le` is the bucket of relays' lateness that counts as on time.",
    (*DELAY_TOPIC, "objective", "le"),
)
SLO_AUDIT_DUE: Final = MetricName(
    "delaytopic_slo_audit_due_timestamp_seconds",
    "gauge",
    "From when on an audit is missing: two runs after the last one, and the length of a run.",
    DELAY_TOPIC,
)
SLO_VERDICT: Final = MetricName("delaytopic_slo_verdict", "gauge", "1 met, 0 missed, -1 could not judge.", DELAY_TOPIC)
SLO_GENERATED: Final = MetricName(
    "delaytopic_slo_generated_timestamp_seconds", "gauge", "When the report was made.", DELAY_TOPIC
)
SLO_WINDOW_END: Final = MetricName(
    "delaytopic_slo_window_end_timestamp_seconds", "gauge", "Up to which deadline is graded.", DELAY_TOPIC
)
SLO_ATTAINMENT: Final = MetricName(
    "delaytopic_slo_attainment_ratio", "gauge", "The share that was good.", (*DELAY_TOPIC, "objective")
)
SLO_BAD: Final = MetricName(
    "delaytopic_slo_bad_records", "gauge", "Records of the window that were not good.", (*DELAY_TOPIC, "objective")
)
SLO_NEWLY_BAD: Final = MetricName(
    "delaytopic_slo_newly_bad_records",
    "gauge",
    "Records that the last audit found not good and the one before did not; of objectives of 100%.",
    (*DELAY_TOPIC, "objective"),
)
SLO_LATENESS: Final = MetricName(
    "delaytopic_slo_lateness_seconds",
    "gauge",
    "Arrival minus deadline of delivered records.",
    (*DELAY_TOPIC, "quantile"),
)
SLO_BUDGET_LEFT: Final = MetricName(
    "delaytopic_slo_budget_remaining_ratio",
    "gauge",
    "The share of the error budget that is left.",
    (*DELAY_TOPIC, "objective"),
)
SLO_BUDGET_EXHAUSTED: Final = MetricName(
    "delaytopic_slo_budget_exhausted_timestamp_seconds",
    "gauge",
    "When the error budget is spent at the present pace; absent while it lasts.",
    (*DELAY_TOPIC, "objective"),
)
SLO_BURN_RATE: Final = MetricName(
    "delaytopic_slo_burn_rate",
    "gauge",
    "How many times faster than allowed the error budget was spent.",
    (*DELAY_TOPIC, "objective", "window"),
)
SLO_BURN_BAD: Final = MetricName(
    "delaytopic_slo_burn_bad_records", "gauge", "Records that were late or lost.", (*DELAY_TOPIC, "objective", "window")
)
SLO: Final = (
    SLO_OBJECTIVE, SLO_THRESHOLD, SLO_AUDIT_DUE, SLO_VERDICT, SLO_GENERATED, SLO_WINDOW_END, SLO_ATTAINMENT, SLO_BAD,
    SLO_NEWLY_BAD, SLO_LATENESS, SLO_BUDGET_LEFT, SLO_BUDGET_EXHAUSTED, SLO_BURN_RATE, SLO_BURN_BAD,
)  # fmt: skip

OPERATOR: Final = (
    RECONCILES, RECONCILE_SECONDS, IN_PROGRESS, QUEUE_DEPTH, QUEUE_AGE, WATCH_EVENT, RESYNC, OBJECTS, LEADER,
    STOPPED_ROLLOUTS, DRIFT,
    KAFKA_SECONDS, KUBERNETES_SECONDS, CONDITION, DESIRED_REPLICAS, FORECAST_RATE, FORECAST_LATENESS, RETAINED,
    RECURRING_RECORDS,
)  # fmt: skip

ALL: Final = OPERATOR + SLO
