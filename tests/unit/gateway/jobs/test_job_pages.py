"""The pages of jobs: from a search to what would be done, to its progress."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlencode

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over
from tests.support.gateway.jobs import Desk, World, gateway_with_jobs
from tests.support.gateway.rights import Table

from delaytopic_process.waiting import wait_until

HOUR_MS = 3_600_000
PAGE = "/delaytopics/shop/reminders"


@pytest.fixture
def desk() -> Iterator[Desk]:
    world = World()
    for partition, name in ((0, b"a-1"), (1, b"a-2"), (1, b"b-1")):
        world.add(partition, NOW_MS + HOUR_MS, name)
    with gateway_with_jobs(world) as found:
        yield found


def texts(page: str) -> str:
    """Return the text that a reader sees, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def fields(page: str) -> bytes:
    """The hidden fields of the page's form, as a browser sends them."""
    return urlencode(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page)).encode()


def test_a_search_leads_to_what_can_be_done_with_all_that_it_finds(desk: Desk) -> None:
    page = desk.get(f"{PAGE}?idPrefix=a-").text

    assert f'<form method="get" action="{PAGE}/jobs/new"' in page
    assert '<input type="hidden" name="idPrefix" value="a-">' in page
    assert "all records that the search finds" in texts(page)


@pytest.mark.parametrize(
    ("query", "question", "button"),
    [
        ("action=Cancel&idPrefix=a-", "Cancel?", "Cancel: 2 records"),
        ("action=Release&idPrefix=&moveBy=", "Release now?", "Release now: 3 records"),
        ("action=Move&moveBy=-15m&deliverAt=", "Move by 15m, earlier?", "Move by 15m, earlier: 3 records"),
        (f"action=Move&deliverAt={NOW_MS + HOUR_MS}", "Move to ", "3 records"),
    ],
)
def test_a_job_is_asked_about_before_it_begins(desk: Desk, query: str, question: str, button: str) -> None:
    page = desk.get(f"{PAGE}/jobs/new?{query}").text

    assert question in texts(page)
    assert button in texts(page)
    assert desk.log.written == {}


def test_a_confirmed_job_shows_its_progress_until_it_is_over(desk: Desk) -> None:
    asked = desk.get(f"{PAGE}/jobs/new?action=Cancel&idPrefix=a-&dueBefore=2h").text
    desk.world.read = {0: 0, 1: 0}

    begun = desk.send("POST", f"{PAGE}/jobs", fields(asked))
    again = desk.send("POST", f"{PAGE}/jobs", fields(asked))
    place = begun.headers["location"]
    while_it_runs = desk.get(place).text
    desk.world.read.clear()
    assert wait_until(lambda: "Done" in desk.get(place).text, timeout_seconds=10)
    page = desk.get(place).text

    assert (begun.status, again.headers["location"]) == (303, place)
    assert '<meta http-equiv="refresh"' in while_it_runs
    assert "Stop" in texts(while_it_runs)
    assert 'http-equiv="refresh"' not in page
    assert '<progress max="2" value="2"' in page
    assert "2 of 2 had their turn Cancelled 2" in texts(page)
    (line,) = re.findall(r"<tr>\n<td>.*?</tr>", desk.get(f"{PAGE}/jobs").text, re.DOTALL)
    assert re.sub(r" \d\d:\d\d.*", "", texts(line).partition(" ")[2]) == "Cancel Done 2 2 0"


def test_a_job_is_stopped_from_its_page(desk: Desk) -> None:
    desk.world.read = {0: 0, 1: 0}
    desk.send("POST", "/v1/delaytopics/shop/reminders/jobs", {"id": "one", "action": "Cancel", "selector": {}})

    stopped = desk.send("POST", f"{PAGE}/job", fields(desk.get(f"{PAGE}/job?id=one").text))

    assert stopped.status == 303
    assert "Cancelled : stopped" in texts(desk.get(f"{PAGE}/job?id=one").text)


def test_texts_of_others_stay_texts(desk: Desk) -> None:
    page = desk.get(f"{PAGE}/jobs/new?action=Cancel&idPrefix=%3Cb%3E%1B").text

    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_who_may_only_read_is_offered_no_job_and_sees_those_of_others() -> None:
    world = World()
    world.add(0, NOW_MS + HOUR_MS, b"a")
    with gateway_with_jobs(world, Table()) as desk:
        document = {"id": "one", "action": "Cancel", "selector": {"keyPrefix": "secret"}}
        desk.send("POST", "/v1/delaytopics/shop/reminders/jobs", document, Authorization="editor")
        paths = (PAGE, f"{PAGE}/jobs", f"{PAGE}/job?id=one", f"{PAGE}/jobs/new?action=Cancel")
        answers = [desk.get(path, Authorization="viewer") for path in paths]

    assert [each.status for each in answers] == [200, 200, 200, 403]
    assert not [each for each in answers if "secret" in each.text or 'value="Cancel"' in each.text]


def test_a_gateway_that_keeps_no_jobs_offers_none() -> None:
    with gateway_over(Scene()) as scene:
        scene.begin({REMINDERS: []})

        assert "/jobs" not in scene.get(PAGE).text
