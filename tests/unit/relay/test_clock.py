from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from delaytopic_api.values import Dialect
from delaytopic_relay.__main__ import KUBERNETES, clock_of
from delaytopic_relay.clock import ManualClock, SystemClock
from delaytopic_relay.core.rules import Rules
from delaytopic_relay.errors import ConfigurationError, UnknownRules

DAY_MS = 86_400_000
LOOP: Any = SimpleNamespace(
    shown_ms={0: DAY_MS, 1: 0},
    partitions=SimpleNamespace(having=lambda what: {1: "why"}),
    shards={0: SimpleNamespace(position=7)},
    at_rest=True,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "clock"
    file.write_text(f"{DAY_MS}\n", encoding="ascii")
    return file


def test_a_clock_shows_the_machines_time_until_what_was_asked_for_is_committed(file: Path) -> None:
    clock = ManualClock(file)

    assert clock.asked_ms == DAY_MS
    assert abs(clock.now_ms() - time.time() * 1_000) < DAY_MS / 2


def test_a_clock_never_goes_back(file: Path) -> None:
    clock = ManualClock(file)
    clock.move(DAY_MS)
    clock.move(5)

    assert clock.shift_ms == DAY_MS
    assert clock.now_ms() - time.time() * 1_000 > DAY_MS / 2


def test_a_turn_reads_the_file_again_and_tells_what_is_committed(file: Path) -> None:
    clock = ManualClock(file)
    draft = file.with_name("draft")
    draft.write_text(f"{2 * DAY_MS}", encoding="ascii")
    draft.replace(file)

    clock.turn(LOOP)

    page = json.loads(clock.pages["/clock"]())
    assert clock.asked_ms == 2 * DAY_MS
    assert page == {
        "shownMs": {"0": DAY_MS, "1": 0},
        "waits": {"1": "why"},
        "nowMs": page["nowMs"],
        "atRest": True,
        "positions": {"0": 7},
    }


def test_a_file_that_says_no_number_is_named(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("tomorrow", encoding="ascii")

    with pytest.raises(ConfigurationError, match=f"--manual-clock: {file} must hold the milliseconds"):
        ManualClock(file)


def test_a_relay_of_a_cluster_refuses_a_clock_that_can_be_moved(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KUBERNETES, "10.0.0.1")

    with pytest.raises(ConfigurationError, match=r"--manual-clock: a relay of a cluster .* remove the flag"):
        clock_of(file)


def test_a_relay_without_such_a_clock_does_not_go_on_with_what_was_read_by_one() -> None:
    dialect_of = SystemClock().checked(lambda rules: pytest.fail("it is not read"))

    with pytest.raises(UnknownRules, match="by a clock that a test had moved ahead"):
        dialect_of(Rules(Dialect.NATIVE, 1_000, "", shift_ms=1))
