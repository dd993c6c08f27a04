"""The gateway's documents over HTTP, with relays that answer as real ones do."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, TIMERS, Scene, gateway_over
from tests.support.relay.schedules import changed

from delaytopic_api.records import Headers
from delaytopic_gateway.access.guard import AuditLine
from delaytopic_gateway.client.new_records import OutgoingRecord
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000
BASE = "/v1/delaytopics/shop/reminders"
SOON = Schedule(NOW_MS + 4_000, 3, b"k", b"soon", [("deliver-id", b"soon")], id=b"soon")
TEA = Schedule(
    NOW_MS + HOUR_MS,
    7,
    b"customer-4",
    b"\xff",
    [("own", b"x"), ("deliver-at", b"1"), ("deliver-id", b"order/17"), ("deliver-to", b"t")],
    id=b"order/17",
    target="t",
)
REPORT = Schedule(
    NOW_MS + HOUR_MS,
    8,
    b"r",
    b"v",
    [("deliver-id", b"r"), ("deliver-every", b"1h"), ("delay-occurrence", b"3:%d" % (NOW_MS + HOUR_MS))],
    id=b"r",
)
NAMELESS = Schedule(NOW_MS + 2 * HOUR_MS, 9, None, None, None)


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    timer = Schedule(NOW_MS, 5, b"k", b"v", None, id=b"k")
    return served.begin({REMINDERS: [(0, SOON), (2, TEA), (3, NAMELESS)], TIMERS: [(1, timer)]})


def test_delay_topics_are_listed_with_what_waits_in_them(scene: Scene) -> None:
    found = scene.get("/v1/delaytopics").document

    assert [(each["name"], each["pending"], each["canMove"], each["canCancel"]) for each in found] == [
        ("reminders", 3, True, True),
        ("timers", 1, False, True),
    ]
    assert found[0]["notes"] == []


def test_one_without_a_relay_is_listed_with_the_reason(scene: Scene) -> None:
    scene.silent = True

    found = scene.get("/v1/delaytopics").document

    assert [(each["pending"], each["notes"]) for each in found] == [
        (None, [f"no relay of shop/{name} runs; ask again"]) for name in ("reminders", "timers")
    ]
    assert scene.get(BASE).status == 503


def test_records_are_listed_page_by_page(scene: Scene) -> None:
    first = scene.get(f"{BASE}/records?limit=2").document
    second = scene.get(f"{BASE}/records?limit=2&after={first['next']}").document

    assert [[each["offset"] for each in page["records"]] for page in (first, second)] == [[3, 7], [9]]
    assert (first["complete"], second["complete"], second["next"]) == (False, True, None)


@pytest.mark.parametrize(
    ("query", "offsets"),
    [
        ("idPrefix=order", [7]),
        ("keyPrefix=customer", [7]),
        ("partition=3", [9]),
        (f"dueFrom={NOW_MS + HOUR_MS}", [7, 9]),
        (f"dueBefore={NOW_MS + HOUR_MS}", [3]),
        ("id=order%2F17&contents=true", [7]),
    ],
)
def test_records_are_selected(scene: Scene, query: str, offsets: list[int]) -> None:
    assert [each["offset"] for each in scene.get(f"{BASE}/records?{query}").document["records"]] == offsets


def test_a_record_is_read_whole_by_its_id(scene: Scene) -> None:
    found = scene.get(f"{BASE}/records/order%2F17").document

    assert (found["dueMs"], found["partition"], found["offset"], found["target"]) == (TEA.due_ms, 2, 7, "t")
    assert (found["content"]["key"], found["content"]["valueBase64"]) == ("customer-4", "/w==")


def test_a_new_record_says_when_and_what(scene: Scene) -> None:
    document = {
        "deliverAfter": "1h30m",
        "id": "order-18",
        "valueBase64": "/wA=",
        "headers": [{"name": "own", "value": "x"}, {"name": "null"}],
        "target": "t",
        "expiresAt": "2026-11-25T00:00:00Z",
    }

    answer = scene.send("POST", f"{BASE}/records", document)

    unknown = {"outcomesFrom": None, "outcome": None}
    accepted = {"partition": 0, "offset": 1, "dueMs": NOW_MS + 5_400_000, **unknown}
    assert (answer.status, answer.document) == (202, accepted)
    headers = [
        ("own", b"x"),
        ("null", None),
        ("deliver-after", b"1h30m"),
        ("deliver-expires-at", b"1795564800000"),
        ("deliver-to", b"t"),
        ("deliver-id", b"order-18"),
    ]
    assert scene.written == [(REMINDERS.source, OutgoingRecord(b"order-18", b"\xff\x00", headers), None)]


def test_a_cancel_goes_to_the_partition_of_its_record(scene: Scene) -> None:
    assert scene.send("DELETE", f"{BASE}/records/order%2F17", None).status == 202
    assert scene.send("DELETE", "/v1/delaytopics/shop/timers/records/k", None).status == 202

    headers: Headers = [("deliver-id", b"order/17"), ("deliver-action", b"cancel")]
    assert scene.written == [
        (REMINDERS.source, OutgoingRecord(b"customer-4", None, headers), 2),
        (TIMERS.source, OutgoingRecord(b"k", None, []), 1),
    ]


@pytest.mark.parametrize(
    ("time", "due_ms"),
    [({"deliverAfter": "3h"}, NOW_MS + 3 * HOUR_MS), ({"deliverAt": NOW_MS + 7}, NOW_MS + 7), ({}, NOW_MS)],
)
def test_a_record_is_moved_with_all_that_it_holds(scene: Scene, time: dict[str, object], due_ms: int) -> None:
    answer = scene.send("PATCH", f"{BASE}/records/order%2F17", time)

    assert (answer.status, answer.document["dueMs"]) == (202, due_ms)
    headers: Headers = [
        ("own", b"x"),
        ("deliver-id", b"order/17"),
        ("deliver-to", b"t"),
        ("deliver-at", b"%d" % due_ms),
    ]
    assert scene.written == [(REMINDERS.source, OutgoingRecord(b"customer-4", b"\xff", headers), 2)]


@pytest.mark.parametrize(
    ("method", "path", "document", "status", "message"),
    [
        ("GET", "/v1/delaytopics/shop/nothing", None, 404, "there is no DelayTopic shop/nothing here"),
        ("GET", f"{BASE}/records?limit=-1", None, 400, "limit: Input should be greater than or equal to 0"),
        ("GET", f"{BASE}/records?after=1:2147483648:0", None, 400, "after: Value error, it is the `next` of a page"),
        ("GET", f"{BASE}/records/soon?partition=4", None, 404, "shop.reminders.delayed has 4 partitions, from 0 on"),
        ("GET", f"{BASE}/records?colour=red", None, 400, "colour: Extra inputs are not permitted"),
        ("GET", f"{BASE}/records/none", None, 404, "no record with id none is pending in shop/reminders"),
        ("POST", f"{BASE}/records", {"deliverAfter": "2x"}, 400, '"2x" is not a duration'),
        ("POST", f"{BASE}/records", {"deliverAt": "2026-11-21"}, 400, 'deliverAt: "2026-11-21" is not a time'),
        ("POST", f"{BASE}/records", {"deliverAt": -1}, 400, "deliverAt: -1 is no time between 1970 and 9999"),
        ("POST", f"{BASE}/records", {"deliverAt": 1795269686}, 400, "deliverAt: 1795269686 as epoch milliseconds"),
        ("POST", f"{BASE}/records", {"deliverAt": "1795269686"}, 400, "deliverAt: 1795269686 as epoch milliseconds"),
        ("POST", f"{BASE}/records", {"expiresAt": 1795269686}, 400, "expiresAt: 1795269686 as epoch milliseconds"),
        ("PATCH", f"{BASE}/records/order%2F17", {"deliverAt": 1795269686}, 400, "deliverAt: 1795269686 as epoch"),
        ("GET", f"{BASE}/records?dueFrom=1795269686", None, 400, "dueFrom: Value error, 1795269686 as epoch"),
        ("GET", f"{BASE}/records?dueBefore=1795269686", None, 400, "dueBefore: Value error, 1795269686 as epoch"),
        ("POST", f"{BASE}/records", {"key": "a", "keyBase64": "YQ=="}, 400, "key and keyBase64 are given"),
        ("POST", f"{BASE}/records", {"headers": [{"name": "deliver-at"}]}, 400, "headers: deliver-at is written by"),
        ("POST", f"{BASE}/records", [], 400, "body: "),
        ("POST", "/v1/delaytopics/shop/timers/records", {}, 409, "records of shop/timers are written in dialect"),
        ("PATCH", f"{BASE}/records/soon", {"deliverAfter": "1h"}, 409, "this record is due within 5 s"),
        ("PATCH", f"{BASE}/records/order%2F17", {"deliverAfter": "25h"}, 409, "the time asked for"),
        ("PATCH", "/v1/delaytopics/shop/timers/records/k", {}, 409, "records of shop/timers cannot be moved"),
        ("POST", f"{BASE}/records", {"cron": "0 9 * * *"}, 400, "a record that recurs, or that names a local time,"),
        ("POST", f"{BASE}/records", {"id": "r", "cron": "0 9 * *"}, 400, "header deliver-cron must be"),
        ("GET", "/v2", None, 404, "Not Found"),
        ("PUT", "/v1/delaytopics", None, 405, "Method Not Allowed"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason_and_nothing_is_written(
    scene: Scene, method: str, path: str, document: object, status: int, message: str
) -> None:
    answer = scene.send(method, path, document)

    assert answer.status == status
    assert answer.document["message"].startswith(message)
    assert scene.written == []


def test_a_method_that_there_is_not_is_answered_with_those_that_there_are(scene: Scene) -> None:
    found = [
        scene.send("PUT", path, None).headers["allow"]
        for path in ("/v1/delaytopics", f"{BASE}/records", f"{BASE}/records/a")
    ]

    assert found == ["GET", "GET, POST", "DELETE, GET, PATCH"]


def test_nothing_is_moved_while_relays_are_behind(scene: Scene) -> None:
    scene.ingest_lag = 3

    answer = scene.send("PATCH", f"{BASE}/records/order%2F17", {})

    assert (answer.status, scene.written) == (409, [])
    assert answer.document["message"].startswith("relays have 3 records of this partition still to read")


def test_an_id_in_two_partitions_is_not_guessed(scene: Scene) -> None:
    scene.waiting[REMINDERS].append((1, TEA))

    answer = scene.send("DELETE", f"{BASE}/records/order%2F17", None)
    told = scene.send("DELETE", f"{BASE}/records/order%2F17?partition=1", None)

    assert (answer.status, answer.document["message"]) == (409, "the id order/17 waits in partitions 1, 2: say which")
    assert (told.status, [partition for _, _, partition in scene.written]) == (202, [1])


def test_an_id_that_waits_twice_is_told_however_large_its_records_are(scene: Scene) -> None:
    scene.waiting[REMINDERS] = [(each, changed(TEA, value=bytes(3 << 20))) for each in (1, 2)]

    answer = scene.send("DELETE", f"{BASE}/records/order%2F17", None)

    assert (answer.status, scene.written) == (409, [])


def test_a_list_ends_where_an_answer_has_no_room_and_goes_on_behind_it(scene: Scene) -> None:
    large = [changed(TEA, offset=offset, value=bytes(400_000)) for offset in range(5)]
    scene.waiting[REMINDERS] = [(0, schedule) for schedule in large]
    pages: list[list[int]] = []
    after: str | None = ""
    while after is not None:
        page = scene.get(f"{BASE}/records?contents=true{after}").document
        pages.append([each["offset"] for each in page["records"]])
        after = page["next"] and f"&after={page['next']}"

    assert pages == [[0, 1], [2, 3], [4]]


def test_a_list_of_many_records_without_contents_ends_so_too(scene: Scene) -> None:
    scene.waiting[REMINDERS] = [(0, changed(TEA, offset=offset, key=bytes(1_000))) for offset in range(2_000)]

    page = scene.get(f"{BASE}/records?limit=10000").document

    assert (len(page["records"]) * 1_500 < 1 << 20, page["complete"]) == (True, False)
    assert page["notes"] == ["there are more than one answer holds"]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"Host": "gateway.example"}, "this gateway is asked as localhost or 127.0.0.1"),
        ({"Origin": "http://site.example"}, "a page of another site may not write here"),
        ({"Origin": "null"}, "a page of another site may not write here"),
        ({"Sec_Fetch_Site": "cross-site"}, "a page of another site may not write here"),
        ({"Sec_Fetch_Site": "same-site"}, "a page of another site may not write here"),
    ],
)
def test_pages_of_other_sites_may_not_write(scene: Scene, headers: dict[str, str], message: str) -> None:
    answer = scene.send("DELETE", f"{BASE}/records/order%2F17", None, **headers)

    assert (answer.status, answer.document, scene.written) == (403, {"message": message}, [])


def test_a_body_that_is_too_long_is_refused_before_it_is_read(scene: Scene) -> None:
    connection = http.client.HTTPConnection(scene.url.removeprefix("http://"), timeout=10)
    with closing(connection):
        connection.putrequest("POST", f"{BASE}/records")
        connection.putheader("Content-Length", str(5 << 20))
        connection.endheaders()
        answer = connection.getresponse()

    assert (answer.status, scene.written) == (413, [])


def test_each_request_that_writes_is_noted(scene: Scene) -> None:
    scene.get(BASE)
    scene.send("DELETE", f"{BASE}/records/order%2F17", None)
    scene.send("DELETE", f"{BASE}/records/none", None)

    assert scene.audit == [
        AuditLine("127.0.0.1", "DELETE", f"{BASE}/records/order/17", 202),
        AuditLine("127.0.0.1", "DELETE", f"{BASE}/records/none", 404),
    ]


def test_every_operation_is_described(scene: Scene) -> None:
    paths = scene.get("/openapi.json").document["paths"]

    assert {(method, path.removeprefix("/v1/delaytopics")) for path, each in paths.items() for method in each} == {
        ("get", ""),
        ("get", "/{namespace}/{name}"),
        ("get", "/{namespace}/{name}/records"),
        ("post", "/{namespace}/{name}/records"),
        ("get", "/{namespace}/{name}/records/{id}"),
        ("delete", "/{namespace}/{name}/records/{id}"),
        ("patch", "/{namespace}/{name}/records/{id}"),
        ("get", "/{namespace}/{name}/outcomes"),
        ("get", "/{namespace}/{name}/outcomes/{place}"),
        ("get", "/{namespace}/{name}/dead-letters"),
        ("get", "/{namespace}/{name}/dead-letters/{place}"),
        ("post", "/{namespace}/{name}/dead-letters/resend"),
        ("get", "/{namespace}/{name}/jobs"),
        ("post", "/{namespace}/{name}/jobs"),
        ("get", "/{namespace}/{name}/jobs/{id}"),
        ("delete", "/{namespace}/{name}/jobs/{id}"),
        ("get", "/v1/clock"),
        ("post", "/v1/clock"),
    }


def test_what_recurs_is_not_moved(scene: Scene) -> None:
    scene.waiting[REMINDERS] = [(1, REPORT)]

    answer = scene.send("PATCH", f"{BASE}/records/r", {"deliverAfter": "1h"})

    assert (answer.status, scene.written) == (409, [])
    assert answer.document["message"].startswith("this record recurs, or is due by the clocks of a zone")


def test_a_rule_is_scheduled_as_its_headers(scene: Scene) -> None:
    rule = {"cron": "0 9 * * *", "timeZone": "Europe/Berlin", "until": "2027-11-21T14:00:00Z", "missed": "None"}

    answer = scene.send("POST", f"{BASE}/records", {"id": "r", "value": "v", **rule})

    assert answer.status == 202
    assert scene.written[0][1].headers == [
        ("deliver-id", b"r"),
        ("deliver-cron", b"0 9 * * *"),
        ("deliver-tz", b"Europe/Berlin"),
        ("deliver-until", b"1826805600000"),
        ("deliver-missed", b"None"),
    ]


def test_a_local_time_is_scheduled_with_its_zone(scene: Scene) -> None:
    local = {"deliverAt": "2027-03-28T02:30:00", "timeZone": "Europe/Berlin"}

    assert scene.send("POST", f"{BASE}/records", {"id": "r", "value": "v", **local}).status == 202
    assert scene.written[0][1].headers == [
        ("deliver-at", b"2027-03-28T02:30:00"),
        ("deliver-id", b"r"),
        ("deliver-tz", b"Europe/Berlin"),
    ]
