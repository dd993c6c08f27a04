from __future__ import annotations

from typing import Any

import pytest

from delaytopic_gateway.client.jobs import count_text, job_lines, new_job, progress_text, table_lines
from delaytopic_gateway.client.time_text import clock_text
from delaytopic_process.errors import InputError

NOW_MS = 1_795_269_600_000
SELECTOR = {"dueFrom": None, "dueBefore": None, "idPrefix": None, "keyPrefix": None, "partition": None}
NOTHING: dict[str, Any] = {"everything": False, "after": None, "at": None, "by": None}


def job(**changes: Any) -> dict[str, Any]:
    """Return the gateway's document of a job that moves two thousand records, in the middle."""
    return {
        "id": "campaign-17",
        "action": "Move",
        "deliverAt": None,
        "moveByMs": 5_400_000,
        "selector": {**SELECTOR, "idPrefix": "campaign-"},
        "state": "Running",
        "message": None,
        "createdBy": "ann",
        "createdMs": NOW_MS,
        "updatedMs": NOW_MS,
        "endedMs": None,
        "expected": 2_000,
        "matched": 1_500,
        "written": 1_497,
        "skipped": {"tooNear": 2, "noId": 1},
        "batches": 2,
        "doneUpToMs": NOW_MS + 60_000,
        "notes": [],
    } | changes


def clock(instant_ms: int) -> str:
    return clock_text(instant_ms, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("action", "given", "asked"),
    [
        ("cancel", {"everything": True}, {"action": "Cancel", "selector": {}}),
        ("release", {"selector": {"partition": 0}}, {"action": "Release", "selector": {"partition": 0}}),
        ("move", {"everything": True, "after": "90m"}, {"action": "Move", "selector": {}, "deliverAfter": "90m"}),
        ("move", {"everything": True, "at": str(NOW_MS)}, {"action": "Move", "selector": {}, "deliverAt": NOW_MS}),
        ("move", {"everything": True, "by": "-15m"}, {"action": "Move", "selector": {}, "moveBy": "-15m"}),
        (
            "move",
            {"selector": {"idPrefix": "a-", "dueBefore": 9, "keyPrefix": None}, "by": "1h30m"},
            {"action": "Move", "selector": {"idPrefix": "a-", "dueBefore": 9}, "moveBy": "1h30m"},
        ),
    ],
)
def test_options_become_the_gateways_document(action: str, given: dict[str, Any], asked: dict[str, Any]) -> None:
    found = new_job("one", action, **{**NOTHING, "selector": {}, **given})

    assert found == {"id": "one", **asked}


@pytest.mark.parametrize(
    ("action", "given", "message"),
    [
        ("cancel", {}, "say which records: by --due-from, "),
        ("cancel", {"everything": True, "selector": {"partition": 0}}, "say which records: by --due-from, "),
        ("move", {"everything": True}, "move takes one of --after, --at and --by"),
        ("move", {"everything": True, "after": "1h", "by": "1h"}, "move takes one of --after, --at and --by"),
        ("release", {"everything": True, "after": "1h"}, "move takes one of --after, --at and --by"),
        ("move", {"everything": True, "by": "soon"}, '"soon" is not a duration'),
    ],
)
def test_what_is_unclear_is_refused(action: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        new_job("one", action, **{**NOTHING, "selector": {}, **given})


@pytest.mark.parametrize(
    ("count", "text"),
    [
        ({"matched": 0, "complete": True}, "0 records match now"),
        ({"matched": 1, "complete": True}, "1 record matches now"),
        ({"matched": 120_000, "complete": False}, "at least 120,000 records match now"),
    ],
)
def test_a_count_says_whether_there_are_more(count: dict[str, Any], text: str) -> None:
    assert count_text(count) == text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Running: 1,500 of 2,000, 1,497 written, 3 skipped"),
        ({"expected": None, "matched": 0, "written": 0, "skipped": {}}, "Running: counting"),
        ({"state": "Failed", "message": "why"}, "Failed: 1,500 of 2,000, 1,497 written, 3 skipped; why"),
    ],
)
def test_progress_is_one_line(changes: dict[str, Any], text: str) -> None:
    assert progress_text(job(**changes)) == text


def test_a_job_is_shown_with_what_it_does_and_skips() -> None:
    assert list(job_lines(job(), now_ms=NOW_MS)) == [
        "campaign-17  Running: 1,500 of 2,000, 1,497 written, 3 skipped",
        "action   Move by 1h30m, later",
        "records  id begins with campaign-",
        f"asked    {clock(NOW_MS)} by ann",
        f"done     what is due before {clock(NOW_MS + 60_000)}",
        "skipped  2 due too soon",
        "skipped  1 without an id",
    ]


def test_a_job_of_all_that_is_over_says_when_it_ended() -> None:
    changes = {"moveByMs": None, "deliverAt": NOW_MS + 9, "selector": SELECTOR, "skipped": {}, "createdBy": None}

    found = list(job_lines(job(**changes, state="Done", endedMs=NOW_MS + 5, notes=["a note"]), now_ms=NOW_MS))

    assert found[1:] == [
        f"action   Move to {clock(NOW_MS + 9)}",
        "records  all",
        f"asked    {clock(NOW_MS)}",
        f"ended    {clock(NOW_MS + 5)}",
        "note     a note",
    ]


def test_jobs_are_a_table() -> None:
    jobs = [job(), job(id="b", action="Release", moveByMs=None, expected=None, written=0, skipped={})]

    head, *lines = table_lines(jobs, now_ms=NOW_MS)

    assert head.split() == ["ID", "ACTION", "STATE", "MATCHING", "WRITTEN", "SKIPPED", "ASKED"]
    assert [line.split("  ")[0] for line in lines] == ["campaign-17", "b"]
    assert [line.split()[-5:] for line in lines] == [
        ["Running", "2,000", "1,497", "3", clock(NOW_MS)],
        ["Running", "-", "0", "0", clock(NOW_MS)],
    ]
