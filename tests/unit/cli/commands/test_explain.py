from __future__ import annotations

import pytest

from delaytopic_cli.__main__ import run


def test_the_steps_from_headers_to_instants_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    stay = ["deliver-id=stay", "deliver-at=2027-03-28T15:00:00", "deliver-tz=Europe/Berlin", "deliver-ladder=1d,12h"]

    assert run(["explain", *stay, "--timestamp", "2026-11-21T12:00:00Z"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "deliver-id: stay",
        "deliver-at: 2027-03-28T15:00:00",
        "deliver-tz: Europe/Berlin",
        "deliver-ladder: 1d,12h",
        "timestamp: 2026-11-21T12:00:00.000Z",
        "rule: 1d before and 12h before 2027-03-28T15:00:00; Europe/Berlin",
        "1. 2027-03-27T15:00:00+01:00 = 2027-03-27T14:00:00.000Z",
        "2. 2027-03-28T03:00:00+02:00 = 2027-03-28T01:00:00.000Z",
    ]


def test_headers_that_a_relay_refuses_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "deliver-id=x", "deliver-cron=0 9 * *"]) == 2
    assert capsys.readouterr().err.startswith("error: header deliver-cron must be a cron expression")
