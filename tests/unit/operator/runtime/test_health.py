"""Tests of when a probe fails: only if a new process would help."""

from __future__ import annotations

import pytest

from delaytopic_operator.model.kinds import Place
from delaytopic_operator.runtime.health import Health, liveness, readiness

NOW_MS = 1_000_000_000


@pytest.mark.parametrize(
    ("lag_ms", "silence_ms", "unanswered_ms", "expected"),
    [
        (0, 240_000, 1_000, Health(True, "alive")),
        (301_000, 1_000, 1_000, Health(False, "the event loop of the watches hangs since 301 s")),
        (0, 601_000, 1_000, Health(False, "watches are silent: pods in shop (601 s)")),
        (301_000, 601_000, 61_000, Health(True, "alive; the API server does not answer")),
    ],
)
def test_liveness(lag_ms: int, silence_ms: int, unanswered_ms: int, expected: Health) -> None:
    signs = {Place("pods", "shop"): NOW_MS - silence_ms, Place("delaytopics", None): NOW_MS}

    assert liveness(lag_ms, signs, NOW_MS - unanswered_ms, NOW_MS) == expected


@pytest.mark.parametrize(
    ("resynced_ms", "is_leader", "stopping", "expected"),
    [
        (0, False, False, Health(False, "the first look at the cluster is not done")),
        (1, True, False, Health(True, "leader")),
        (1, False, False, Health(True, "standby")),
        (1, True, True, Health(False, "stopping")),
    ],
)
def test_readiness(resynced_ms: int, is_leader: bool, stopping: bool, expected: Health) -> None:
    assert readiness(resynced_ms, is_leader, stopping) == expected
