"""The demo from start to verdict, once: it starts its own Kafka and Redis, and kills its relay."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.harness.fixtures import QUICK_START

from delaytopic_local.demo.run import run_demo
from delaytopic_local.demo.scenario import Scenario

DOCUMENT = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {name: reminders, namespace: shop}
spec:
  source: {topic: shop.delayed, partitions: 4}
  target: {topic: shop.reminders}
  precision: 50ms
"""
# The last quarter of the records is due five seconds after sending and later: it can be cancelled and replaced. A relay
# that is killed at three seconds can't have delivered it.
SCENARIO = Scenario(records=1_000, lead_ms=1_000, spread_ms=6_000, kill_after_ms=3_000, settle_ms=4_000)


@pytest.mark.nightly  # each day a relay of a local session is killed, and its backlog arrives
def test_a_killed_relay_loses_nothing_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
    file = tmp_path / "topics.yaml"
    file.write_text(DOCUMENT, encoding="utf-8")
    lines: list[str] = []

    verdict = run_demo(file, None, lines.append, SCENARIO)

    assert verdict.faults == {}, "\n".join(lines)
    assert (verdict.delivered, verdict.cancelled, verdict.replaced, verdict.dead_lettered, verdict.pending) == (
        900,
        100,
        100,
        5,
        0,
    )
    assert any(line.startswith("killed the relay (SIGKILL)") for line in lines)
    assert lines[-1] == "every record arrived once, and none early"
