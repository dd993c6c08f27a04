from __future__ import annotations

from pathlib import Path

from delaytopic_cli.demo.run import run_demo
from delaytopic_cli.demo.scenario import Scenario

DOCUMENT = """
apiVersion: delaytopic.dev/v1alpha1
kind: DelayTopic
metadata: {name: reminders, namespace: shop}
spec:
  source: {topic: shop.delayed, partitions: 4}
  target: {topic: shop.reminders}
  precision: 50ms
"""
SCENARIO = Scenario(records=2_000, lead_ms=2_000, spread_ms=8_000, kill_after_ms=5_000, settle_ms=4_000)


def test_a_killed_relay_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text(DOCUMENT, encoding="utf-8")
    lines: list[str] = []

    verdict = run_demo(file, None, lines.append, SCENARIO)

    assert verdict.faults == {}, "\n".join(lines)
    assert (verdict.delivered, verdict.cancelled, verdict.replaced, verdict.dead_lettered, verdict.pending) == (
        1_900,
        100,
        100,
        5,
        0,
    )
    assert any(line.startswith("killed the relay (SIGKILL)") for line in lines)
    assert lines[-1] == "every record arrived once, and none early"
