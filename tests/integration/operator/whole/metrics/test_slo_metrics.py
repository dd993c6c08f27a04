"""Findings of an audit reach status and metrics page of a real operator, and go with the DelayTopic."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.operator.audits import end_audit
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.relay.process import wait_for
from tests.unit.audit.sample_report import sample_report

from delaytopic_audit.report.reporting import no_verdict
from delaytopic_operator.clock import epoch_ms

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

YEARLY = {"schedule": "@yearly", "ledger": "s3a://nowhere/ledger"}
"""No audit of its own comes in between."""


@pytest.fixture(scope="module")
def audited(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform whose operator makes audits."""
    with run_platform("audited", audit=YEARLY) as platform:
        yield platform


def series(platform: Platform, name: str) -> dict[str, float]:
    """The gauges of a DelayTopic's SLO, by name and the labels that are their own."""
    found = {}
    of_topic = f'delaytopic_name="{name}",delaytopic_namespace="{platform.team}"'
    for line in platform.operator.get("/metrics").splitlines():
        if line.startswith("delaytopic_slo_") and of_topic in line:
            labels, value = line.removeprefix("delaytopic_slo_").rsplit(" ", 1)
            found[labels.replace(f"{{{of_topic}}}", "").replace(f"{of_topic},", "")] = float(value)
    return found


def await_series(platform: Platform, name: str, **wanted: float) -> dict[str, float]:
    """The gauges, once these have such values."""

    def there() -> dict[str, float] | None:
        found = series(platform, name)
        return found if wanted.items() <= found.items() else None

    found: dict[str, float] = wait_for(there, lambda: f"{series(platform, name)}\n{platform.operator.why()}")
    return found


def test_what_is_asked_of_a_delay_topic_is_served_before_it_is_audited(audited: Platform) -> None:
    audited.apply_topic("asked", slo={"lateness": "4s", "objective": "99.5%"}, guarantee="AtLeastOnce")
    audited.await_condition("asked", "TopicsReady")

    found = wait_for(lambda: series(audited, "asked"), audited.operator.why)

    due_s = found.pop("audit_due_timestamp_seconds")
    assert found == {
        'threshold_seconds{le="5.0",objective="Timely"}': 4.0,
        'objective_ratio{objective="Timely"}': 0.995,
        'objective_ratio{objective="Complete"}': 1.0,
        'objective_ratio{objective="NotEarly"}': 1.0,
    }
    assert due_s > epoch_ms() / 1_000 + 2 * 365 * 86_400


@pytest.mark.nightly  # each day reports count what audits find
@pytest.mark.takes_long("two audits, one after the other")
def test_what_audits_find_is_served_by_the_one_that_leads_until_the_delay_topic_goes(audited: Platform) -> None:
    audited.apply_topic("found")
    first, now_ms = sample_report(), epoch_ms()
    slo = end_audit(audited, "found", first.model_copy(update={"generated_at_ms": now_ms - 10_000}))
    found = await_series(audited, "found", **{'newly_bad_records{objective="Complete"}': 3.0})

    again = end_audit(audited, "found", first.model_copy(update={"generated_at_ms": now_ms - 5_000}))
    known = await_series(audited, "found", **{'newly_bad_records{objective="Complete"}': 0.0})
    blind = end_audit(audited, "found", no_verdict("shop/found", ["A topic is gone."], now_ms))
    unjudged = await_series(audited, "found", verdict=-1.0)
    audited.delete_topic("found")
    audited.await_gone("found")

    assert slo["missed"] == ["Timely", "Complete", "Unique", "NotEarly"]
    assert again == slo | {"auditedAt": again["auditedAt"]}
    assert _newly_bad(found) == {"Complete": 3.0, "Unique": 2.0, "NotEarly": 1.0}
    assert _newly_bad(known) == {"Complete": 0.0, "Unique": 0.0, "NotEarly": 0.0}
    assert (blind["verdict"], blind["budgetLeftPercent"]) == ("CannotJudge", slo["budgetLeftPercent"])
    assert (found["verdict"], found['burn_rate{objective="Timely",window="24h"}']) == (0.0, 1.7732)
    assert found['budget_remaining_ratio{objective="Timely"}'] == -0.773205
    assert known['bad_records{objective="Complete"}'] == unjudged['bad_records{objective="Complete"}'] == 3.0
    wait_for(lambda: not series(audited, "found"), audited.operator.why)


def _newly_bad(found: dict[str, float]) -> dict[str, float]:
    named = "newly_bad_records{objective="
    return {name.removeprefix(named).strip('"}'): value for name, value in found.items() if name.startswith(named)}
