"""Jobs over HTTP: what is asked for, who may, and how a job is found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over
from tests.support.gateway.jobs import Desk, World, gateway_with_jobs
from tests.support.gateway.rights import Table

from delaytopic_gateway.access.guard import AuditLine
from delaytopic_gateway.jobs.job import State
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.waiting import wait_until

HOUR_MS = 3_600_000
BASE = "/v1/delaytopics/shop/reminders"
CANCEL = {"action": "Cancel", "selector": {"idPrefix": "a-"}}


def world_of_three() -> World:
    world = World()
    for partition, name in ((0, b"a-1"), (1, b"a-2"), (1, b"b-1")):
        world.add(partition, NOW_MS + HOUR_MS, name)
    return world


@pytest.fixture
def desk() -> Iterator[Desk]:
    with gateway_with_jobs(world_of_three()) as found:
        yield found


def ended(desk: Desk, job_id: str) -> dict[str, Any]:
    """Return a job when it is over."""

    def is_over() -> bool:
        return desk.get(f"{BASE}/jobs/{job_id}").document["endedMs"] is not None

    assert wait_until(is_over, timeout_seconds=10)
    found: dict[str, Any] = desk.get(f"{BASE}/jobs/{job_id}").document
    return found


def test_a_job_is_accepted_with_its_address_and_tells_what_was_done(desk: Desk) -> None:
    answer = desk.send("POST", f"{BASE}/jobs", {"id": "campaign-17", **CANCEL})
    job = ended(desk, "campaign-17")

    assert (answer.status, answer.headers["location"]) == (202, f"{BASE}/jobs/campaign-17")
    assert job == {
        "id": "campaign-17",
        "action": "Cancel",
        "deliverAt": None,
        "moveByMs": None,
        "selector": {"dueFrom": None, "dueBefore": None, "idPrefix": "a-", "keyPrefix": None, "partition": None},
        "state": "Done",
        "message": None,
        "createdBy": None,
        "createdMs": NOW_MS,
        "updatedMs": NOW_MS,
        "endedMs": NOW_MS,
        "expected": 2,
        "matched": 2,
        "written": 2,
        "skipped": {},
        "batches": 2,
        "doneUpToMs": None,
        "notes": [],
    }
    assert wait_until(
        lambda: desk.lines == ["job shop/reminders/campaign-17: Done, 2 of 2 written"], timeout_seconds=10
    )


def test_a_dry_run_counts_and_writes_nothing(desk: Desk) -> None:
    answer = desk.send("POST", f"{BASE}/jobs", {**CANCEL, "dryRun": True})

    assert (answer.status, answer.document) == (200, {"matched": 2, "complete": True})
    assert (desk.log.written, desk.get(f"{BASE}/jobs").document) == ({}, [])


def test_asked_for_twice_by_one_id_it_is_done_once(desk: Desk) -> None:
    move = {"id": "later", "action": "Move", "deliverAfter": "3h", "selector": {}}

    first = desk.send("POST", f"{BASE}/jobs", move)
    ended(desk, "later")
    desk.world.now_ms += 5
    second = desk.send("POST", f"{BASE}/jobs", move)
    other = desk.send("POST", f"{BASE}/jobs", {**move, "deliverAfter": "4h"})

    assert (first.status, second.status, second.document["written"]) == (202, 202, 3)
    assert (other.status, other.document) == (
        409,
        {"message": "there is a job later that asks for something else; choose another id"},
    )


def test_jobs_are_listed_the_last_one_first(desk: Desk) -> None:
    for number in range(3):
        job_id = f"job-{number}"
        desk.send("POST", f"{BASE}/jobs", {"id": job_id, **CANCEL})
        ended(desk, job_id)
        desk.world.now_ms += 1

    assert [each["id"] for each in desk.get(f"{BASE}/jobs").document] == ["job-2", "job-1", "job-0"]


def test_a_job_that_waits_says_for_what_and_can_be_stopped(desk: Desk) -> None:
    desk.world.read = {0: 0, 1: 0}
    desk.send("POST", f"{BASE}/jobs", {"id": "waits", **CANCEL})
    assert wait_until(lambda: desk.get(f"{BASE}/jobs/waits").document["message"] is not None, timeout_seconds=10)

    waiting = desk.get(f"{BASE}/jobs/waits").document
    beside = desk.send("POST", f"{BASE}/jobs", {"id": "beside", **CANCEL})
    stopped = desk.send("DELETE", f"{BASE}/jobs/waits", None)
    again = desk.send("DELETE", f"{BASE}/jobs/waits", None)

    assert (waiting["state"], waiting["message"]) == ("Running", "no relay lists all of partition 0 now")
    assert beside.document == {"message": "the job waits of shop/reminders is running; wait for it, or stop it"}
    assert (stopped.status, stopped.document["state"], stopped.document["message"]) == (202, "Cancelled", "stopped")
    assert (again.status, again.document) == (409, {"message": "the job waits is Cancelled already"})


@pytest.mark.parametrize(
    ("document", "status", "message"),
    [
        ({"action": "Cancel"}, 400, "selector: Field required"),
        ({"action": "Delete", "selector": {}}, 400, "action: Input should be 'Cancel', 'Move' or 'Release'"),
        ({"action": "Move", "selector": {}, "deliverAt": 1795269686}, 400, "deliverAt: 1795269686 as epoch"),
        ({"action": "Cancel", "selector": {"dueFrom": 1795269686}}, 400, "selector.dueFrom: 1795269686 as epoch"),
        ({"action": "Move", "selector": {}}, 400, "Move takes one of deliverAt, deliverAfter and moveBy"),
        ({"action": "Cancel", "selector": {}, "moveBy": "1h"}, 400, "Move takes one of"),
        ({"action": "Move", "selector": {}, "moveBy": "1h", "deliverAt": 5}, 400, "Move takes one of"),
        ({"action": "Move", "selector": {}, "moveBy": "--1h"}, 400, '"-1h" is not a duration'),
        ({"action": "Cancel", "selector": {"dueFrom": "noon"}}, 400, 'selector.dueFrom: "noon" is not a time'),
        ({"action": "Cancel", "selector": {"colour": "red"}}, 400, "selector.colour: Extra inputs"),
        ({"action": "Cancel", "selector": {}, "id": "a/b"}, 400, "id: String should match pattern"),
        ({"action": "Cancel", "selector": {"partition": 2}}, 409, "shop.reminders.delayed has 2 partitions, from 0 on"),
    ],
)
def test_what_is_no_job_is_refused_and_nothing_is_written(
    desk: Desk, document: dict[str, Any], status: int, message: str
) -> None:
    answer = desk.send("POST", f"{BASE}/jobs", document)

    assert (answer.status, desk.log.written) == (status, {})
    assert answer.document["message"].startswith(message)


def test_a_job_that_there_is_not_is_missing(desk: Desk) -> None:
    assert [desk.send(method, f"{BASE}/jobs/none", None).status for method in ("GET", "DELETE")] == [404, 404]


def test_a_gateway_without_a_topic_for_jobs_says_so_and_does_all_else() -> None:
    with gateway_over(Scene()) as scene:
        scene.begin({REMINDERS: []})
        answers = [scene.get(f"{BASE}/jobs"), scene.send("POST", f"{BASE}/jobs", CANCEL), scene.get(BASE)]

    assert [each.status for each in answers] == [503, 503, 200]
    assert answers[0].document == {"message": "this gateway has no topic for jobs"}


def test_who_may_only_read_sees_jobs_without_keys_and_who_may_not_sees_none() -> None:
    with gateway_with_jobs(world_of_three(), Table()) as desk:
        document = {"id": "one", "action": "Cancel", "selector": {"keyPrefix": "secret"}}
        callers = [{}, *({"Authorization": name} for name in ("other", "viewer", "editor"))]

        created = [desk.send("POST", f"{BASE}/jobs", document, **caller).status for caller in callers]
        listed = [desk.get(f"{BASE}/jobs", **caller) for caller in callers]
        read = [desk.get(f"{BASE}/jobs/one", **caller) for caller in callers]
        stopped = [desk.send("DELETE", f"{BASE}/jobs/one", None, **caller).status for caller in callers[:3]]

    assert (created, stopped) == ([401, 404, 403, 202], [401, 404, 403])
    assert [each.status for each in listed] == [each.status for each in read] == [401, 404, 200, 200]
    assert ["secret" in each.text for each in (*listed, *read)] == [False, False, False, True] * 2
    assert read[2].document["notes"] == ["the selector has a prefix of keys, which is shown to who may write"]
    assert (read[2].document["createdBy"], desk.log.written["shop/reminders/one"].created_by) == ("editor", "editor")


def test_asking_and_stopping_are_noted(desk: Desk) -> None:
    desk.send("POST", f"{BASE}/jobs", {"id": "one", **CANCEL})
    ended(desk, "one")
    desk.send("DELETE", f"{BASE}/jobs/one", None)

    assert desk.audit == [
        AuditLine("127.0.0.1", "POST", f"{BASE}/jobs", 202),
        AuditLine("127.0.0.1", "DELETE", f"{BASE}/jobs/one", 409),
    ]


IDLE = [replace(REMINDERS, namespace=f"hostile-{number}", source=f"hostile-{number}") for number in range(6)]


class Crowd(World):
    """DelayTopics of many namespaces, of which one has relays."""

    def all(self) -> Sequence[ServedTopic]:
        return [*IDLE, REMINDERS]

    def relay_urls(self, served: ServedTopic) -> Sequence[str]:
        return super().relay_urls(served) if served == REMINDERS else []


def test_jobs_that_wait_for_relays_hold_up_no_other() -> None:
    world = Crowd(world_of_three().source)
    with gateway_with_jobs(world) as desk:
        for served in IDLE:
            base = f"/v1/delaytopics/{served.full_name}/jobs"
            assert desk.send("POST", base, {"id": "idle", **CANCEL}).status == 202
        waiting = wait_until(
            lambda: all(desk.log.written[f"{served.full_name}/idle"].message for served in IDLE), timeout_seconds=15
        )

        desk.send("POST", f"{BASE}/jobs", {"id": "one", **CANCEL})
        job = ended(desk, "one")

    assert (waiting, job["state"], job["written"]) == (True, "Done", 2)
    assert {desk.log.written[f"{served.full_name}/idle"].state for served in IDLE} == {State.RUNNING}


def test_a_gateway_that_starts_takes_up_what_another_one_left() -> None:
    world = world_of_three()
    world.read = {0: 0, 1: 0}
    with gateway_with_jobs(world) as first:
        first.send("POST", f"{BASE}/jobs", {"id": "left", **CANCEL})
    world.read.clear()

    with gateway_with_jobs(world, log=first.log) as second:
        job = ended(second, "left")

    assert (job["state"], job["written"]) == ("Done", 2)


def test_who_starts_later_fences_the_first_which_says_so() -> None:
    world = world_of_three()
    world.read = {0: 0, 1: 0}
    with gateway_with_jobs(world) as first:
        first.send("POST", f"{BASE}/jobs", {"id": "one", **CANCEL})
        # It learns of it when it writes, which it does every few seconds while it waits.
        world.before_answer = lambda: world.pause(6)
        with gateway_with_jobs(world, log=first.log) as second:
            told = "job shop/reminders/one: another gateway has taken it over"
            assert wait_until(lambda: told in first.lines, timeout_seconds=15)
            world.read.clear()
            job = ended(second, "one")

    assert (job["state"], job["written"], first.lines) == ("Done", 2, [told])
