"""The plans that docs/how-to/plan-in-a-pipeline.md shows are the ones that its documents have."""

from __future__ import annotations

import re
from typing import Any

from tests.support.paths import ROOT
from tests.unit.operator.offline.scenes import REDIS, SECRET, against, converged, delay_class, delay_topic, offline

from delaytopic_cli.plan.text import text_lines
from delaytopic_operator.offline.outcome import Outcome

SPEC: dict[str, Any] = {
    "connection": {"bootstrapServers": "kafka.platform:9093", "authentication": SECRET},
    "defaults": {"partitions": 12, "replicationFactor": 3},
    "limits": {"maxReplicas": 8},
}
CLASS = delay_class(backend=REDIS, **SPEC)
BEFORE = delay_topic("order-reminders", precision="200ms")
# A configuration has the time at which its rules were declared, so that its digest is another each time.
DIGEST = re.compile(r"\b[0-9a-f]{16}\b")


def shown_after(words: str) -> str:
    """The first block of the page behind these words, without digests."""
    page = (ROOT / "docs/how-to/plan-in-a-pipeline.md").read_text(encoding="utf-8")
    return DIGEST.sub("", page.partition(words)[2].split("```\n")[1])


def text(outcome: Outcome) -> str:
    return DIGEST.sub("", "\n".join(text_lines(outcome, objects=False)) + "\n")


def test_the_page_shows_the_plan_of_files_alone() -> None:
    assert text(offline(CLASS, BEFORE)) == shown_after("-f reminders.yaml\n```\n")


def test_the_page_shows_the_plan_of_an_edit_against_a_cluster() -> None:
    edited = delay_topic("order-reminders", precision="50ms")

    assert text(against(converged(CLASS, BEFORE), edited)) == shown_after("Only what differs is shown:")
