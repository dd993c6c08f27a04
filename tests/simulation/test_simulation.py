"""A hundred histories full of faults, each day; ten thousand in the night, and with `make simulate`."""

from __future__ import annotations

import pytest
from tests.simulation.history import History
from tests.simulation.hunting import try_seeds
from tests.simulation.plans.plan import Plan
from tests.simulation.plans.planning import plan_for
from tests.simulation.world.kafka import Kafka

PORTION = 100


@pytest.mark.long
def test_no_history_breaks_a_promise() -> None:
    findings = try_seeds(0, PORTION, None, "RedisZset")

    assert (findings.runs, findings.failures) == (PORTION, [])
    assert findings.counts["path: woke up as a zombie in the middle of a tick"] > PORTION / 2
    assert findings.counts["path: outcome unknown"] > 0.15 * PORTION


def test_a_seed_always_gives_the_same_history() -> None:
    plans = [plan_for(7), plan_for(7)]

    assert plans[0] == plans[1]
    assert _logs(plans[0]) == _logs(plans[1])


def _logs(plan: Plan) -> list[object]:
    history = History(plan)
    history.run()
    return _told(history.kafka)


def _told(kafka: Kafka) -> list[object]:
    return [kafka.now_ms, kafka.commits, kafka.counts, [(sent.at_ms, sent.record) for sent in kafka.target]]
