"""The jobs that a gateway keeps in memory."""

from __future__ import annotations

import pytest

from delaytopic_gateway.jobs.job import MOST_KEPT_PARTS, Action, Job, Part, Selector, State, forgotten


def job(name: str, updated_ms: int, *, parts: int = 1, namespace: str = "shop", state: State = State.DONE) -> Job:
    return Job(
        id=name,
        namespace=namespace,
        name="reminders",
        source="source",
        action=Action.CANCEL,
        selector=Selector(),
        created_ms=0,
        updated_ms=updated_ms,
        skipped={},
        state=state,
        parts=tuple(Part(partition=each, before_offset=0) for each in range(parts)),
    )


@pytest.mark.parametrize(
    ("parts", "keys"),
    [
        (MOST_KEPT_PARTS - 3, []),
        (MOST_KEPT_PARTS - 2, ["shop/reminders/first"]),
        (MOST_KEPT_PARTS, ["shop/reminders/second", "shop/reminders/first"]),
    ],
)
def test_a_namespace_has_its_latest_jobs_in_memory_and_those_that_run(parts: int, keys: list[str]) -> None:
    latest = job("latest", 9, parts=parts)
    others = [
        job("first", 1),
        job("second", 2, parts=2),
        job("running", 0, parts=MOST_KEPT_PARTS, state=State.RUNNING),
        job("theirs", 0, parts=MOST_KEPT_PARTS, namespace="bank"),
    ]

    assert forgotten([*others, latest], latest) == keys


def test_a_job_that_runs_makes_room_for_nothing() -> None:
    latest = job("latest", 9, state=State.RUNNING)

    assert forgotten([job("first", 1, parts=MOST_KEPT_PARTS), latest], latest) == []
