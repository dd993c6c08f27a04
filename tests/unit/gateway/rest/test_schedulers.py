"""The REST of etf1's scheduler and admin: documents as those services write them, of what waits and what was sent."""

from __future__ import annotations

import json
import threading
import tracemalloc
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.gateway.gateway import NOW_MS, REMINDERS, TIMERS, Scene, gateway_over

from delaytopic_api.records import Headers
from delaytopic_gateway.access.bounds.pages import PAGE_BYTES
from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.rest.schedulers import First, Search, bounded, next_midnight_ms
from delaytopic_gateway.rest.schedulers import Schedule as Shown
from delaytopic_relay.core.commands import Schedule

NOW_S = NOW_MS // 1_000
OTHERS = replace(TIMERS, name="others", source="others.delayed")
ELSEWHERE = replace(TIMERS, namespace="video", name="elsewhere", source="video.delayed", history="video.history")


def timer(name: bytes, epoch: int, timestamp: int, value: bytes = b"v", key: bytes | None = b"vid1") -> Schedule:
    headers: Headers = [
        ("scheduler-epoch", b"%d" % epoch),
        ("scheduler-target-topic", b"timers"),
        ("scheduler-target-key", key),
    ]
    return Schedule(epoch * 1_000, epoch, name, value, headers, -8, name, "timers", None, timestamp * 1_000)


def copy(name: bytes, epoch: int, timestamp: int, topic: bytes = b"timers.delayed") -> RawRecord:
    headers = (
        ("scheduler-epoch", b"%d" % epoch),
        ("scheduler-target-topic", b"timers"),
        ("scheduler-target-key", b"vid1"),
        ("scheduler-timestamp", b"%d" % timestamp),
        ("scheduler-key", name),
        ("scheduler-topic", topic),
    )
    return RawRecord(Coordinates("timers.history", 0, 0), 0, b"vid1", b"past", headers)


def document(name: str, epoch: int, timestamp: int, value: bytes = b"v", topic: str = "timers.delayed") -> Any:
    return {
        "id": name,
        "epoch": epoch,
        "timestamp": timestamp,
        "topic": topic,
        "target-topic": "timers",
        "target-key": "vid1",
        "value": b64encode(value).decode(),
    }


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin(
        {
            REMINDERS: [(0, Schedule(NOW_MS + 1, 1, b"k", b"native", None))],
            TIMERS: [(0, timer(b"a", NOW_S + 60, 5)), (1, timer(b"b", NOW_S + 30, 7))],
            OTHERS: [(0, timer(b"c", NOW_S + 90, 6, b"\xff"))],
            ELSEWHERE: [],
        }
    )


def ids(found: Any) -> list[str]:
    return [each["schedule"]["id"] for each in found["schedules"]]


def test_schedules_are_an_array_of_what_is_due_today(scene: Scene) -> None:
    tomorrow_s = NOW_S + 25 * 3_600
    scene.waiting[TIMERS].append((0, timer(b"tomorrow", tomorrow_s, 5)))
    assert datetime.fromtimestamp(NOW_S + 90, UTC).date() < datetime.fromtimestamp(tomorrow_s, UTC).date()

    assert scene.get("/schedules").document == [
        document("b", NOW_S + 30, 7),
        document("a", NOW_S + 60, 5),
        document("c", NOW_S + 90, 6, b"\xff", "others.delayed"),
    ]


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-03-28T12:00:00+01:00", 12),
        ("2026-03-29T00:00:00+01:00", 23),
        ("2026-10-25T00:00:00+02:00", 25),
        ("2026-10-25T02:30:00+02:00", 22.5),
        ("2026-10-25T02:30:00+01:00", 21.5),
    ],
)
def test_a_day_ends_at_midnight_also_when_the_clock_changes(now: str, hours: float) -> None:
    now_ms = round(datetime.fromisoformat(now).timestamp() * 1_000)

    assert next_midnight_ms(now_ms, ZoneInfo("Europe/Berlin")) - now_ms == hours * 3_600_000


def test_schedules_end_with_the_day_of_the_machines_zone(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    # It is November, when Berlin is an hour ahead.
    midnight_s = next_midnight_ms(NOW_MS, UTC) // 1_000
    scene.waiting = {TIMERS: [(0, timer(b"%d" % at, midnight_s + at, 1)) for at in (-3_601, -3_600, -1, 0)]}
    found = {}
    for zone in ("UTC", "Europe/Berlin", "nonsense"):
        monkeypatch.setenv("TZ", zone)
        found[zone] = [each["id"] for each in scene.get("/schedules").document]

    assert found == {"UTC": ["-3601", "-3600", "-1"], "Europe/Berlin": ["-3601"], "nonsense": ["-3601", "-3600", "-1"]}


def test_without_a_schedule_the_array_is_empty(scene: Scene) -> None:
    scene.waiting = {REMINDERS: []}

    assert scene.get("/schedules").document == []


def test_info_names_kafka_and_the_topics(scene: Scene) -> None:
    found = scene.get("/info").document

    assert found["kafka"] == {
        "bootstrap_servers": "kafka:9092",
        "topics": ["timers.delayed", "others.delayed", "video.delayed"],
        "history_topic": "timers.history",
    }
    assert (found.keys(), found["server_address"]) == (
        {"hostname", "address", "server_address", "kafka"},
        scene.url.removeprefix("http://"),
    )


def test_liveness_is_an_empty_answer(scene: Scene) -> None:
    assert scene.get("/liveness")[:2] == (200, "")


def test_each_namespace_is_a_scheduler(scene: Scene) -> None:
    found = scene.get("/api/schedulers").document

    assert [(each["name"], each["http_port"], len(each["instances"])) for each in found] == [
        (name, scene.url.rpartition(":")[2], 1) for name in ("shop", "video")
    ]
    assert [each["instances"][0] | {"hostname": ["here"]} for each in found] == [
        {
            "ip": "127.0.0.1",
            "hostname": ["here"],
            "topics": topics,
            "history_topic": history,
            "bootstrap_servers": "kafka:9092",
        }
        for topics, history in (
            (["timers.delayed", "others.delayed"], "timers.history"),
            (["video.delayed"], "video.history"),
        )
    ]


def test_a_search_names_the_scheduler_of_each_schedule(scene: Scene) -> None:
    assert scene.get("/api/live/scheduler/shop/schedules?schedule-id=a").document == {
        "found": 1,
        "schedules": [{"scheduler": "shop", "schedule": document("a", NOW_S + 60, 5)}],
    }
    assert scene.get("/api/live/scheduler/nobody/schedules").document == {"found": 0, "schedules": []}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["b", "c", "a"]),
        ("sort-by=asc", ["a", "c", "b"]),
        ("sort-by=id", ["c", "b", "a"]),
        ("sort-by=epoch%20asc", ["b", "a", "c"]),
        ("sort-by=nonsense%20asc", ["a", "c", "b"]),
        (f"epoch-from={NOW_S + 60}", ["c", "a"]),
        (f"epoch-from={NOW_S + 30}&epoch-to={NOW_S + 60}", ["b", "a"]),
        ("epoch-from=x&epoch-to=", ["b", "c", "a"]),
        ("max=2", ["b", "c"]),
        ("max=-1", ["b", "c", "a"]),
    ],
)
def test_searches_filter_sort_and_cut_as_the_admin_does(scene: Scene, query: str, found: list[str]) -> None:
    answer = scene.get(f"/api/live/scheduler/shop/schedules?{query}").document

    assert ids(answer) == found
    assert answer["found"] == (3 if "max" in query else len(found))


def test_the_history_has_what_was_delivered_and_all_has_both(scene: Scene) -> None:
    scene.past["timers.history"] = [
        copy(b"a", NOW_S - 9, 1),
        copy(b"z", NOW_S - 8, 2),
        copy(b"y", NOW_S, 3, b"strangers"),
    ]

    past = scene.get("/api/history/scheduler/shop/schedules").document
    everything = scene.get("/api/scheduler/shop/schedules").document

    assert (past["found"], ids(past), ids(everything)) == (2, ["z", "a"], ["b", "c", "a", "z", "a"])
    assert past["schedules"][1]["schedule"] == document("a", NOW_S - 9, 1, b"past")
    assert scene.get("/api/stats").document == [
        {"scheduler": "shop", "total_live": 3, "total_history": 2, "total": 5},
        {"scheduler": "video", "total_live": 0, "total_history": 0, "total": 0},
    ]


def test_a_schedule_is_found_with_all_its_versions_or_not_at_all(scene: Scene) -> None:
    scene.past["timers.history"] = [copy(b"a", NOW_S - 9, 1)]

    found = {kind: scene.get(f"/api{kind}/scheduler/shop/schedule/a") for kind in ("", "/live", "/history")}
    nothing = scene.get("/api/scheduler/shop/schedule/none")

    assert {kind: [each["schedule"]["epoch"] for each in answer.document] for kind, answer in found.items()} == {
        "": [NOW_S + 60, NOW_S - 9],
        "/live": [NOW_S + 60],
        "/history": [NOW_S - 9],
    }
    assert nothing[:2] == (404, "")


def test_an_error_is_told_as_the_admin_does(scene: Scene) -> None:
    scene.silent = True

    answer = scene.get("/api/live/scheduler/shop/schedules")

    assert (answer.status, answer.document) == (500, {"error": "no relay of shop/timers runs; ask again"})


def test_a_long_backlog_is_searched_page_by_page(scene: Scene) -> None:
    scene.waiting[TIMERS] = [(n % 4, timer(b"%d" % n, NOW_S + n, n)) for n in range(2_500)]

    found = scene.get("/api/live/scheduler/shop/schedules?schedule-id=24&max=3&sort-by=timestamp%20asc").document

    assert (found["found"], ids(found)) == (sum("24" in str(n) for n in range(2_500)), ["24", "124", "224"])


LARGE = 200 << 10
"""Five of them have room in an answer."""


class BesideAReader(Scene):
    """Relays that give the next page when somebody has read of the one before."""

    def __init__(self) -> None:
        super().__init__({TIMERS: [(0, timer(b"%d" % n, NOW_S + n, 1, bytes(LARGE))) for n in range(30)]})
        self.is_read = threading.Event()

    def ask(self, urls: Sequence[str], parameters: Mapping[str, int | str]) -> list[RelayAnswer]:
        assert "after" not in parameters or self.is_read.wait(10)
        return super().ask(urls, parameters)


def test_schedules_are_answered_while_further_ones_are_asked_for() -> None:
    slow = BesideAReader()
    with gateway_over(slow), urllib.request.urlopen(f"{slow.url}/schedules", timeout=10) as answer:
        first = answer.read(LARGE)
        slow.is_read.set()
        found = json.loads(first + answer.read())

    assert [each["id"] for each in found] == [str(n) for n in range(30)]


def test_a_search_has_the_first_that_have_room_and_says_that_there_are_more(scene: Scene) -> None:
    scene.waiting = {TIMERS: [(0, timer(b"%d" % n, NOW_S + n, n, bytes(LARGE))) for n in range(30)]}

    answer = scene.get("/api/live/scheduler/shop/schedules")
    few = scene.get("/api/live/scheduler/shop/schedules?max=3")

    assert (answer.document["found"], ids(answer.document)) == (30, ["29", "28", "27", "26", "25"])
    assert answer.headers["warning"] == '199 delaytopic "there are more than one answer holds: ask for fewer"'
    assert (few.document["found"], ids(few.document), "warning" in few.headers) == (30, ["29", "28", "27"], False)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3 * PAGE_BYTES)), max_size=30), st.integers(1, 5))
def test_the_first_that_have_room_are_those_of_all_in_order(drawn: list[tuple[int, int]], most: int) -> None:
    sizes = {n: bytes(size) for n, (_, size) in enumerate(drawn)}
    schedules = [Shown(str(n), 1, timestamp, "", "", "", sizes[n]) for n, (timestamp, _) in enumerate(drawn)]
    search = Search(most=most)
    first = First(search)
    for schedule in schedules:
        first.add(schedule)

    expected, _ = bounded(search.sort(schedules), most)
    assert (first.schedules(), first.added) == (expected, len(schedules))
    assert sum(schedule.bytes for schedule in expected[1:]) <= PAGE_BYTES


@pytest.mark.parametrize(
    "path", ["/api/stats", "/api/history/scheduler/shop/schedules", "/api/history/scheduler/shop/schedule/z"]
)
def test_a_history_is_read_through_and_not_held(scene: Scene, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(topic: str, last: int) -> Iterator[RawRecord]:
        for n in range(500):
            yield replace(copy(b"z", NOW_S, n), value=bytes(LARGE))

    monkeypatch.setattr(scene, "read", read)
    tracemalloc.start()
    try:
        answer = scene.get(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert answer.status == 200
    # All of it is 100 MB.
    assert most < 20_000_000


@pytest.mark.parametrize("text", ["-", "1.5", "9" * 30, "٣"])
def test_numbers_that_are_none_count_as_not_given(text: str) -> None:
    assert Search.of({"max": text, "epoch-from": text, "epoch-to": text}) == Search()


def test_equal_timestamps_are_in_the_order_of_ids() -> None:
    schedules = [Shown(name, 1, 1, "", "", "", None) for name in ("b", "a", "c")]

    assert [one.id for one in Search().sort(schedules)] == ["a", "b", "c"]
