"""The gauges of a DelayTopic's SLO: those that follow from its spec, and those of its last audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.operator.scenes import CONFIG, KEY, NOW_MS, altered, delay_class, document, seen

from delaytopic_api.documents import ConditionType
from delaytopic_api.relay import LATENESS_EDGES_MS, lateness_bucket
from delaytopic_operator.config import AuditConfig
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.model.conditions import UNKNOWN, Condition, instant
from delaytopic_operator.observe.audit_verdict import AuditVerdict
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.report import metric_names
from delaytopic_operator.report.metrics import OperatorMetrics
from delaytopic_operator.report.slo import by_metric, slo_samples
from delaytopic_operator.report.status import StatusMetrics
from delaytopic_relay.telemetry.metrics import RelayMetrics

HOUR_MS = 3_600_000
RUN_MS = 4_200_000
AUDITED_MS = NOW_MS - HOUR_MS
SPEC = {"slo": {"lateness": "4s", "objective": "99.5%"}}
SLO: dict[str, Any] = {
    "verdict": "Missed",
    "auditedAt": instant(AUDITED_MS),
    "window": "24h",
    "windowEnd": instant(AUDITED_MS - 60_000),
    "records": 1_000,
    "latenessP50": "4ms",
    "latenessP99": "269ms",
    "latenessP999": "3s744ms",
    "attainmentPercent": "99.8%",
    "budgetLeftPercent": "-77.32%",
    "budgetExhaustedAt": instant(AUDITED_MS + HOUR_MS),
    "objectives": [
        {"name": "Timely", "objective": "99.5%", "attainment": "99.8%", "bad": 2},
        {"name": "Complete", "objective": "100%", "attainment": "99.9%", "bad": 1, "newlyBad": 1},
        {"name": "Unique", "objective": "100%", "bad": 0, "newlyBad": 0},
    ],
    "burnRates": [{"window": "1h", "rate": "14.5", "bad": 29}, {"window": "720h", "rate": "0.0051", "bad": 30}],
    "faults": [{"hour": instant(AUDITED_MS), "objective": "Complete", "records": 1}],
    "report": "https://reports/shop",
}


def audited(slo: Any, schedule: str | None = "7 * * * *", **spec: Any) -> Observation:
    """A DelayTopic whose audit said so."""
    ledger = "s3a://audits" if schedule is not None else None
    config = CONFIG.model_copy(update={"audit": AuditConfig(schedule=schedule, ledger=ledger)})
    verdict = AuditVerdict(Condition(ConditionType.SLO_MET, UNKNOWN, "Said", "Said."), slo) if slo is not None else None
    return seen(document(deleted_ms=None, **SPEC | spec), slo=verdict, config=config)


def told(look: Observation) -> dict[str, float]:
    """The gauges by name, without what all names begin with, and labels."""
    return {
        " ".join((sample.metric.name.removeprefix("delaytopic_slo_"), *sample.labels)): sample.value
        for sample in slo_samples(look)
    }


ASKED = {
    "threshold_seconds Timely 5.0": 4.0,
    "objective_ratio Timely": 0.995,
    "objective_ratio Complete": 1.0,
    "objective_ratio Unique": 1.0,
    "objective_ratio NotEarly": 1.0,
}


def test_what_is_asked_is_told_before_any_audit() -> None:
    assert told(audited(None, schedule=None)) == ASKED


def test_what_is_not_promised_is_not_asked() -> None:
    assert "objective_ratio Unique" not in told(audited(None, guarantee="AtLeastOnce"))


def test_the_last_audit_is_told_as_the_status_has_it() -> None:
    assert told(audited(SLO)) == ASKED | {
        "audit_due_timestamp_seconds": (AUDITED_MS + 2 * HOUR_MS + RUN_MS) / 1_000,
        "verdict": 0.0,
        "generated_timestamp_seconds": AUDITED_MS / 1_000,
        "window_end_timestamp_seconds": (AUDITED_MS - 60_000) / 1_000,
        "attainment_ratio Timely": 0.998,
        "attainment_ratio Complete": 0.999,
        "bad_records Timely": 2,
        "bad_records Complete": 1,
        "bad_records Unique": 0,
        "newly_bad_records Complete": 1,
        "newly_bad_records Unique": 0,
        "lateness_seconds 0.5": 0.004,
        "lateness_seconds 0.99": 0.269,
        "lateness_seconds 0.999": 3.744,
        "budget_remaining_ratio Timely": -0.7732,
        "budget_exhausted_timestamp_seconds Timely": (AUDITED_MS + HOUR_MS) / 1_000,
        "burn_rate Timely 1h": 14.5,
        "burn_bad_records Timely 1h": 29,
        "burn_rate Timely 720h": 0.0051,
        "burn_bad_records Timely 720h": 30,
    }


def test_each_further_threshold_is_told_with_its_own_budget() -> None:
    fast = {
        "name": "Timely-100ms",
        "objective": "99%",
        "attainment": "98.5%",
        "bad": 15,
        "budgetLeftPercent": "-50%",
        "budgetExhaustedAt": instant(AUDITED_MS),
        "burnRates": [{"window": "6h", "rate": "1.5", "bad": 15}],
    }
    forged = {**fast, "name": 'Timely-"} 1\nx'}
    asked = SPEC["slo"] | {"thresholds": [{"lateness": "100ms", "objective": "99%"}]}
    seen_so = audited(SLO | {"objectives": [fast, forged]})
    spec: dict[str, Any] = {"slo": asked}
    look = seen(document(deleted_ms=None, **spec), slo=seen_so.audit.slo, config=seen_so.config)

    assert {name: value for name, value in told(look).items() if "Timely-" in name} == {
        "threshold_seconds Timely-100ms 0.1": 0.1,
        "objective_ratio Timely-100ms": 0.99,
        "attainment_ratio Timely-100ms": 0.985,
        "bad_records Timely-100ms": 15,
        "budget_remaining_ratio Timely-100ms": -0.5,
        "budget_exhausted_timestamp_seconds Timely-100ms": AUDITED_MS / 1_000,
        "burn_rate Timely-100ms 6h": 1.5,
        "burn_bad_records Timely-100ms 6h": 15,
    }


def test_an_audit_that_never_came_is_due_from_when_it_was_to_come() -> None:
    cron_job = {"kind": "CronJob", "metadata": {"name": "audit", "creationTimestamp": instant(NOW_MS - 60_000)}}
    look = audited(None)
    with_cron_job = altered(look, job=cron_job)

    due_s = [told(each)["audit_due_timestamp_seconds"] for each in (look, with_cron_job)]

    run_s = (2 * HOUR_MS + RUN_MS) / 1_000
    assert due_s == [(NOW_MS - HOUR_MS) / 1_000 + run_s, NOW_MS / 1_000 - 60 + run_s]


def test_the_audit_of_a_class_is_due_by_its_own_schedule() -> None:
    look = audited(SLO)
    assert look.route.accepted is not None
    of_class = altered(
        look, verdict=replace(look.route.accepted, delay_class=delay_class(audit={"schedule": "*/5 * * * *"}))
    )

    assert told(of_class)["audit_due_timestamp_seconds"] == (AUDITED_MS + 2 * 5 * 60_000 + RUN_MS) / 1_000


@pytest.mark.parametrize(
    "look",
    [
        audited(SLO, schedule=None),
        audited(SLO, schedule="not a line"),
        seen(document(), config=audited(SLO).config),
        audited(SLO, schedule="7 * * * *", source={"topic": "shop.b"}),
    ],
    ids=["no schedule", "no line", "going", "refused"],
)
def test_no_audit_is_due_where_none_is_made(look: Observation) -> None:
    assert "audit_due_timestamp_seconds" not in told(look)


def test_while_it_is_paused_the_status_is_told_as_it_was() -> None:
    paused = document(deleted_ms=None, annotations={"delaytopic.dev/pause-reconciliation": "true"})

    look = seen({**paused, "status": {"slo": SLO}}, slo=None)

    assert told(look)["newly_bad_records Complete"] == 1


@pytest.mark.parametrize(
    ("lateness_ms", "bucket"),
    [(10, "0.01"), (11, "0.02"), (5_000, "5.0"), (5_001, "10.0"), (3_600_000, "3600.0"), (3_600_001, "+Inf")],
)
def test_the_bucket_of_the_threshold_is_the_nearest_that_is_not_below(lateness_ms: int, bucket: str) -> None:
    assert lateness_bucket(lateness_ms) == bucket


def test_buckets_are_named_as_relays_name_them() -> None:
    page = RelayMetrics("shop", "orders").render().decode()
    served = [line.partition('le="')[2].partition('"')[0] for line in page.splitlines() if "lateness_seconds_b" in line]

    assert [*map(lateness_bucket, LATENESS_EDGES_MS), "+Inf"] == served


HOSTILE: list[Any] = [
    "text",
    ["a", "list"],
    {"verdict": 'a"b\n{}', "auditedAt": "9999-12-31T23:59:59Z", "windowEnd": "0001-01-01T00:00:00+14:00"},
    {"verdict": "Met", "objectives": [{"name": 'x"} 1\nup 0', "attainment": "1%", "bad": 1, "newlyBad": 1}]},
    {
        "burnRates": [
            {"window": 'x"\n', "rate": "1"},
            {"window": "1h", "rate": "1e999"},
            {"window": "6h", "rate": "NaN"},
        ]
    },
    {"budgetLeftPercent": "inf%", "latenessP50": "NaN", "latenessP99": "99999h" * 9, "attainmentPercent": "١%"},
    {"budgetLeftPercent": "9" * 32, "latenessP50": "\ud800"},
    {"burnRates": [{"window": "1h", "rate": "1"}, {"window": "1h", "rate": "2"}]},
]


@pytest.mark.parametrize("slo", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_a_status_holds_the_page_can_be_read_and_names_nothing_unknown(slo: Any) -> None:
    metrics = OperatorMetrics()
    living = document(deleted_ms=None, annotations={"delaytopic.dev/pause-reconciliation": "true"})
    look = seen({**living, "status": {"slo": slo}}, slo=None)

    metrics.set_slo(KEY, by_metric(slo_samples(look)))

    families = list(text_string_to_metric_families(metrics.render().decode()))
    labels = {value for each in families for sample in each.samples for value in sample.labels.values()}
    assert {each.name for each in families if each.name.startswith("delaytopic_slo_")} == {
        metric.name for metric in metric_names.SLO
    }
    known = {*KEY, "Timely", "Complete", "Unique", "NotEarly", "Told", "0.5", "0.99", "0.999", "1h", "6h", "5.0"}
    assert labels - labels_of_process() <= known
    assert all(sample.value - sample.value == 0 for each in families for sample in each.samples)


def labels_of_process() -> set[str]:
    families = text_string_to_metric_families(OperatorMetrics().render().decode())
    return {value for each in families for sample in each.samples for value in sample.labels.values()}


def test_a_delay_topic_that_is_gone_takes_its_series_with_it() -> None:
    metrics, living = OperatorMetrics(), audited(SLO)
    gone = seen(None, record=None, fleet=living.fleet)
    for look in (living, gone):
        StatusMetrics(metrics).update(look, plan(look), Outcome())

    assert [line for line in metrics.render().decode().splitlines() if line.startswith("delaytopic_slo_")] == []
