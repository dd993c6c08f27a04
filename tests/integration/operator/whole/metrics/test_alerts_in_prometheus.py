"""The way of an alert, whole: an audit's pod ends, a real operator serves what it found, a real Prometheus fires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.fixtures import prepared
from tests.support.chart.promtool import prometheus_program
from tests.support.operator.audits import end_audit
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.servers.prometheus import Prometheus
from tests.unit.audit.sample_report import sample_report

from delaytopic_audit.model.report import BurnRate, Report
from delaytopic_operator.clock import epoch_ms

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

RECORDED_SECONDS = 150.0
"""Recording rules are evaluated once a minute, as they are shipped; an alert on two of them may take two."""


@pytest.fixture(scope="module")
def audited(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform whose operator makes audits, none of which comes by itself in the time of a test."""
    with run_platform("alerting", audit={"schedule": "@yearly", "ledger": "s3a://nowhere/ledger"}) as platform:
        yield platform


@pytest.fixture
def prometheus(audited: Platform, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that reads the operator's page."""
    with Prometheus(prepared(prometheus_program), tmp_path, [audited.operator.port()]) as server:
        yield server


def just_now(report: Report, seconds_ago: int) -> Report:
    """The report as if it was made so long ago, of records that were graded until a minute before."""
    made_ms = epoch_ms() - 1_000 * seconds_ago
    assert report.window is not None
    window = report.window.model_copy(update={"to_ms": made_ms - 60_000})
    return report.model_copy(update={"generated_at_ms": made_ms, "window": window})


@pytest.mark.takes_long("rules are evaluated once a minute, as they are shipped")
def test_what_an_audit_finds_fires_and_ends_when_the_next_finds_no_more(
    audited: Platform, prometheus: Prometheus
) -> None:
    audited.apply_topic("fires")
    audited.apply_topic("calm")
    burning = [BurnRate(window="1h", total=1_000, bad=50, rate=50.0)]
    bad = sample_report().model_copy(update={"burn_rates": burning})
    end_audit(audited, "calm", just_now(sample_report(faulty=False), 10))
    end_audit(audited, "fires", just_now(bad, 10))

    prometheus.await_firing(
        audited.team,
        {"DelayPromiseBroken": {"Complete", "Unique", "NotEarly"}, "DelaySLOFastBurn": {"Timely"}},
        RECORDED_SECONDS,
    )

    end_audit(audited, "fires", just_now(sample_report(), 5))
    prometheus.await_firing(audited.team, {}, RECORDED_SECONDS)
