"""The page of metrics: the names are those of the table, and say what they are given."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from delaytopic_operator.kube.errors import Call
from delaytopic_operator.model import kinds
from delaytopic_operator.model.kinds import Place
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.report import metric_names
from delaytopic_operator.report.metrics import Gauges, OperatorMetrics, WorkLoad

KEY = Key("shop", "reminders")
OF = 'delaytopic_name="reminders",delaytopic_namespace="shop"'


def filled() -> OperatorMetrics:
    metrics = OperatorMetrics()
    metrics.connect(
        Gauges(
            load=lambda: WorkLoad(3, 1_500, {KEY: 1_795_269_686_270}),
            is_leader=lambda: True,
            signs_of_life_ms=lambda: {
                Place("pods", "shop"): 1_795_269_686_000,
                Place("pods", "bank"): 1_795_269_700_000,
            },
            resynced_ms=lambda: 1_795_269_000_000,
            objects=lambda: {"delaytopics": 7},
            recurring=lambda: {("shop", "False", "Suspended"): 2},
        )
    )
    metrics.observe_pass("Success", 0.2)
    metrics.observe_request(Call("patch", kinds.DELAY_TOPIC, *KEY, "status"), "200", 0.01)
    metrics.observe_kafka("describe_topics", "Success", 0.3)
    metrics.add_drift("deployments")
    metrics.set_stopped_rollouts({"relay:2": 3})
    metrics.set_conditions(KEY, {"Ready": "True"})
    metrics.set_scaling(KEY, 3, 120.5, None)
    metrics.set_retained(KEY, 42)
    metrics.set_slo(KEY, {metric_names.SLO_BURN_RATE: {("Timely", "1h"): 14.5}})
    return metrics


def series(metrics: OperatorMetrics) -> dict[str, str]:
    lines = metrics.render().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


def test_every_metric_of_the_table_is_served_and_no_other() -> None:
    families = text_string_to_metric_families(filled().render().decode())
    served = {(family.name, family.type) for family in families if family.name.startswith("delaytopic_")}

    assert served == {(metric.name, metric.type) for metric in metric_names.ALL}


def test_the_values_are_those_given() -> None:
    values = series(filled())

    expected = {
        'delaytopic_operator_reconcile_total{result="Success"}': "1.0",
        f"delaytopic_operator_reconcile_in_progress_start_seconds{{{OF}}}": "1.79526968627e+09",
        "delaytopic_operator_queue_depth": "3.0",
        "delaytopic_operator_queue_oldest_age_seconds": "1.5",
        "delaytopic_operator_leader": "1.0",
        'delaytopic_operator_objects{resource="delaytopics"}': "7.0",
        'delaytopic_operator_drift_corrections_total{object="deployments"}': "1.0",
        'delaytopic_operator_k8s_request_seconds_count{code="200",resource="delaytopics/status",verb="patch"}': "1.0",
        'delaytopic_operator_kafka_admin_seconds_count{op="describe_topics",result="Success"}': "1.0",
        f'delaytopic_operator_condition{{{OF},status="True",type="Ready"}}': "1.0",
        'delaytopic_operator_stopped_rollout_delaytopics{image="relay:2"}': "3.0",
        f"delaytopic_operator_desired_replicas{{{OF}}}": "3.0",
        'delaytopic_operator_recurring_records{delaytopic_namespace="shop",reason="Suspended",status="False"}': "2.0",
        f"delaytopic_operator_forecast_peak_rate{{{OF}}}": "120.5",
        f"delaytopic_operator_retained_backlog_messages{{{OF}}}": "42.0",
        f'delaytopic_slo_burn_rate{{{OF},objective="Timely",window="1h"}}': "14.5",
    }
    assert {name: values.get(name) for name in expected} == expected
    assert f"delaytopic_operator_forecast_lateness_seconds{{{OF}}}" not in values


def test_a_delay_topic_that_is_gone_leaves_no_series() -> None:
    metrics = filled()

    metrics.forget(KEY)

    assert [name for name in series(metrics) if "reminders" in name and "in_progress" not in name] == []


def test_a_condition_has_one_status() -> None:
    metrics = filled()

    metrics.set_conditions(KEY, {"Ready": "False"})

    ready = [name for name in series(metrics) if name.startswith("delaytopic_operator_condition")]
    assert ready == [f'delaytopic_operator_condition{{{OF},status="False",type="Ready"}}']
