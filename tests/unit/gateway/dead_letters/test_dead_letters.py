"""Dead letters over REST and as pages: whose they are, what is shown, what is sent, and that hostile ones stay text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.support.gateway.dead_letters import AT_MS, stored
from tests.support.gateway.gateway import REMINDERS, TIMERS, Scene, gateway_over
from tests.support.gateway.rights import Table
from tests.unit.gateway.console.test_pages import texts

from delaytopic_api import Duration
from delaytopic_api.records import Headers
from delaytopic_gateway.access.guard import AuditLine
from delaytopic_gateway.client.dead_letters import Choice, Outcome, Place, Progress
from delaytopic_gateway.client.new_records import Timing
from delaytopic_gateway.errors import ConflictError, SupersededError

BASE = "/v1/delaytopics/shop/reminders/dead-letters"
PAGES = "/delaytopics/shop/reminders/dead-letters"
SOURCE = REMINDERS.source
OTHERS = "bank.payments.delayed"
TOPIC = REMINDERS.dead_letter
NOON_MS = 1_795_262_400_000
NEEDED = "this needs update on delaytopics/records of delaytopic.dev in namespace shop"
SHARED = [
    stored("0:1", SOURCE, key=b"customer-4", value=b'{"tea": 1}', headers=[("own", b"1"), ("deliver-at", b"soon")]),
    stored("0:2", OTHERS, key=b"bank-key", value=b"bank-value", detail="bank-detail"),
    stored("0:3", SOURCE, "too-large", omitted_bytes=9_000_000, source_until="2026-12-21T14:01:26Z"),
    stored("0:4", SOURCE),
]


@pytest.fixture(scope="module")
def access() -> Table:
    return Table()


@pytest.fixture(scope="module")
def served(access: Table) -> Iterator[Scene]:
    with gateway_over(Scene(), access) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    scene = served.begin({REMINDERS: [], TIMERS: []})
    scene.letters.records = {TOPIC: [*SHARED]}
    return scene


def asked(scene: Scene, path: str, caller: str = "editor") -> Any:
    return scene.get(path, Authorization=caller).document


def sent(scene: Scene, document: Any, caller: str = "editor") -> Any:
    return scene.send("POST", f"{BASE}/resend", document, Authorization=caller)


def form(scene: Scene, fields: dict[str, str]) -> Any:
    headers = {"Authorization": "editor", "Accept": "text/html"}
    return scene.send("POST", f"{PAGES}/resend", urlencode(fields).encode(), **headers)


def test_the_newest_come_first_and_reasons_are_counted(scene: Scene) -> None:
    found = asked(scene, BASE)

    assert [each["place"] for each in found["deadLetters"]] == ["0:4", "0:3", "0:1"]
    assert (found["reasons"], found["next"], found["complete"]) == ({"expired": 2, "too-large": 1}, None, True)
    assert {name: value for name, value in found["deadLetters"][2].items() if value is not None} == {
        "place": "0:1",
        "atMs": AT_MS + 1,
        "reason": "expired",
        "detail": "why",
        "sourcePartition": 0,
        "sourceOffset": 1,
        "key": "customer-4",
        "keyBytes": 10,
        "valueBytes": 10,
        "sentAgain": False,
    }


def test_lists_are_paged_and_of_some_reasons(scene: Scene) -> None:
    first = asked(scene, f"{BASE}?reason=expired&limit=1")
    second = asked(scene, f"{BASE}?reason=expired&limit=1&after={first['next']}")

    assert [each["place"] for page in (first, second) for each in page["deadLetters"]] == ["0:4", "0:1"]
    assert second["next"] is None


def test_who_looks_at_a_part_is_told_so(scene: Scene) -> None:
    scene.letters.most = 2

    found = asked(scene, BASE)

    assert [each["place"] for each in found["deadLetters"]] == ["0:4", "0:3"]
    assert (found["complete"], found["next"]) == (False, "3")
    assert found["notes"] == [f"2 offsets of {TOPIC} were looked at; older ones are not counted"]


def test_a_letter_is_shown_with_what_it_holds_and_the_headers_of_its_producer(scene: Scene) -> None:
    found = asked(scene, f"{BASE}/0:1")

    assert (found["cannotBeSent"], found["content"]["value"]) == (None, '{"tea": 1}')
    assert [(each["name"], each["value"]) for each in found["content"]["headers"]] == [
        ("own", "1"),
        ("deliver-at", "soon"),
    ]


def test_what_lacks_a_part_says_so_and_until_when_the_source_has_it(scene: Scene) -> None:
    found = asked(scene, f"{BASE}/0:3")

    assert found["cannotBeSent"].startswith("its value of 9,000,000 bytes was left out")
    assert (found["omittedBytes"], found["sourceUntil"]) == (9_000_000, "2026-12-21T14:01:26Z")


@pytest.mark.parametrize(
    ("until", "text"),
    [("2026-12-21T14:01:26Z", "keeps it until 2026-12-21T14:01:26Z."), ("unlimited", "keeps it for ever."), (None, "")],
)
def test_a_page_says_until_when_the_source_keeps_a_value_that_was_left_out(
    scene: Scene, until: str | None, text: str
) -> None:
    scene.letters.records[TOPIC] = [stored("0:3", SOURCE, "too-large", value=None, omitted_bytes=9, source_until=until)]

    page = scene.get(f"{PAGES}/letter?place=0:3", Authorization="editor").text

    assert f"The relay left it out: it has 9 bytes.{f' The source {text}' if text else ''}<" in page


def test_letters_of_others_in_the_same_topic_are_not_there(scene: Scene) -> None:
    page, letter, missing = (scene.get(each, Authorization="editor") for each in (BASE, f"{BASE}/0:2", f"{BASE}/0:9"))

    assert "bank" not in page.text
    assert letter.status == missing.status == 404
    assert letter.text == missing.text.replace("0:9", "0:2")


def test_what_no_relay_wrote_is_nobodys(scene: Scene) -> None:
    nameless: list[Headers | None] = [[], None]
    scene.letters.records[TOPIC] = [stored("0:1", SOURCE)._replace(headers=headers) for headers in nameless]

    page = asked(scene, BASE)
    assert (page["deadLetters"], page["notes"]) == ([], [f"records of {TOPIC} that no relay wrote are left out: 1"])
    assert asked(scene, f"{BASE}/0:1")["message"] == "there is no dead letter of shop/reminders at 0:1"


@pytest.mark.parametrize(
    ("document", "choice", "places"),
    [
        ({"places": ["0:1", "0:4"]}, Choice(SOURCE), [Place(0, 1), Place(0, 4)]),
        ({"reasons": ["expired"]}, Choice(SOURCE, frozenset({"expired"})), None),
        ({"all": True}, Choice(SOURCE), None),
        ({"all": True, "deliverAfter": "5m"}, Choice(SOURCE, timing=Timing(after=Duration("5m"))), None),
        ({"all": True, "deliverAt": NOON_MS}, Choice(SOURCE, timing=Timing(at_ms=NOON_MS)), None),
    ],
)
def test_what_is_asked_for_is_sent_to_the_source_and_is_of_it(
    scene: Scene, document: dict[str, Any], choice: Choice, places: list[Place] | None
) -> None:
    outcome = Outcome([Place(0, 1), Place(0, 5)], {Place(0, 3): "it lacks its value"}, sent_before=[Place(0, 4)])
    scene.letters.outcome = outcome

    answer = sent(scene, document)

    assert (answer.status, scene.letters.asked) == (202, [(TOPIC, choice, places, False)])
    assert answer.document == {
        "source": SOURCE,
        "sent": 2,
        "places": ["0:1", "0:5"],
        "sentBefore": ["0:4"],
        "incomplete": [{"place": "0:3", "reason": "it lacks its value"}],
        "incompleteCount": 1,
        "fromFirst": False,
        "complete": True,
        "dryRun": False,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "give one of places, reasons, and all: true"),
        ({"all": True, "places": ["0:1"]}, "give one of places, reasons, and all: true"),
        ({"places": ["1"]}, "places.0: String should match"),
        ({"places": ["0:1"] * 101}, "places: List should have at most 100 items"),
        ({"reasons": ["Expired!"]}, "reasons.0: String should match"),
        ({"all": True, "to": "bank"}, "to: Extra inputs are not permitted"),
        ({"all": True, "deliverAt": 1, "deliverAfter": "1s"}, "deliverAt and deliverAfter are given"),
        ({"all": True, "deliverAfter": "soon"}, '"soon"'),
    ],
)
def test_what_cannot_be_meant_is_refused(scene: Scene, document: dict[str, Any], message: str) -> None:
    answer = sent(scene, document)

    assert (answer.status, scene.letters.asked) == (400, [])
    assert message in answer.document["message"]


def test_only_native_records_take_another_time(scene: Scene) -> None:
    path = "/v1/delaytopics/shop/timers/dead-letters/resend"

    answer = scene.send("POST", path, {"all": True, "deliverAfter": "5m"}, Authorization="editor")

    assert (answer.status, scene.letters.asked) == (409, [])


@pytest.mark.parametrize(("error", "status"), [(SupersededError("younger"), 409), (ConflictError("busy"), 409)])
def test_a_sending_that_another_one_ends_is_a_conflict(
    scene: Scene, error: Exception, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*arguments: Any, **options: Any) -> Outcome:
        raise error

    monkeypatch.setattr(scene.letters, "send", send)

    assert sent(scene, {"all": True}).status == status


def test_who_may_only_read_sees_neither_contents_nor_details_and_sends_nothing(scene: Scene) -> None:
    page, letter = (scene.get(each, Authorization="viewer") for each in (BASE, f"{BASE}/0:1"))
    pages = [scene.get(each, Authorization="viewer").text for each in (PAGES, f"{PAGES}/letter?place=0:1")]
    refused = sent(scene, {"all": True}, "viewer")

    note = f"keys, values and headers are left out: {NEEDED}"
    assert page.document["notes"] == [note]
    assert letter.headers["warning"] == f'199 delaytopic "{note}"'
    assert [name for name, value in letter.document.items() if value is not None] == [
        "place",
        "atMs",
        "reason",
        "sourcePartition",
        "sourceOffset",
        "sentAgain",
    ]
    assert not re.search(r"customer-4|tea|>why|<form|<button", "".join([page.text, letter.text, *pages]))
    assert [NEEDED in each for each in pages] == [True, True]
    assert (refused.status, refused.document, scene.letters.asked) == (403, {"message": NEEDED}, [])


@pytest.mark.parametrize(
    ("method", "path", "body", "statuses"),
    [
        # for nobody, a tenant of another namespace, a viewer, an editor
        ("GET", BASE, None, (401, 404, 200, 200)),
        ("GET", f"{BASE}/0:1", None, (401, 404, 200, 200)),
        ("POST", f"{BASE}/resend", {"places": ["0:1"]}, (401, 404, 403, 202)),
        ("POST", f"{BASE}/resend", {"all": True, "dryRun": True}, (401, 404, 403, 202)),
        ("GET", PAGES, None, (401, 404, 200, 200)),
        ("GET", f"{PAGES}/letter?place=0:1", None, (401, 404, 200, 200)),
        ("GET", f"{PAGES}/resend?reason=expired", None, (401, 404, 403, 200)),
        ("POST", f"{PAGES}/resend", b"place=0:1", (401, 404, 403, 303)),
    ],
)
def test_each_caller_is_answered_by_his_rights(
    scene: Scene, method: str, path: str, body: Any, statuses: tuple[int, ...]
) -> None:
    callers: list[dict[str, str]] = [{}, *({"Authorization": name} for name in ("other", "viewer", "editor"))]

    assert tuple(scene.send(method, path, body, **headers).status for headers in callers) == statuses


def test_each_sending_is_noted_with_who_asked_for_it(scene: Scene) -> None:
    for caller in ("viewer", "editor"):
        sent(scene, {"all": True}, caller)

    path = f"{BASE}/resend"
    assert scene.audit == [
        AuditLine("127.0.0.1", "POST", path, status, user) for status, user in ((403, "viewer"), (202, "editor"))
    ]


HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


@pytest.mark.parametrize("value", [b"\xff\x00" * 50_000, b"<b>" * 400_000, b"[" * 200_000, None, HOSTILE.encode()])
def test_texts_of_strangers_stay_texts_and_pages_stay_small(scene: Scene, value: bytes | None) -> None:
    headers: Headers = [
        (HOSTILE, HOSTILE.encode()),
        ("<i>" * 9_000, b"\xff" * 90_000),
        ("", None),
    ]
    record = stored(
        "0:1", SOURCE, HOSTILE, key=HOSTILE.encode() * 900, value=value, headers=headers * 300, detail=HOSTILE
    )
    scene.letters.records[TOPIC] = [record]

    pages = [
        scene.get(path, Authorization="editor").text
        for path in (PAGES, f"{PAGES}/letter?place=0:1", f"{PAGES}?reason={quote(HOSTILE)}")
    ]

    for page in pages:
        assert not re.search(r"<(script|b|i)>", page)
        assert not set("\x1b\u202e") & set(page)
        assert len(page) < 500_000
    assert "&lt;script&gt;" in pages[0]
    assert "And 644 more." in pages[1]


def test_the_page_leads_to_each_letter_reason_and_older_ones(scene: Scene) -> None:
    scene.letters.records[TOPIC] = [stored(f"0:{n}", SOURCE, ("expired", "too-large")[n % 2]) for n in range(120)]

    first = scene.get(PAGES, Authorization="editor").text
    (link,) = re.findall(r'<a href="([^"]+)" rel="next">', first)
    second = scene.get(link.replace("&amp;", "&"), Authorization="editor").text
    expired = scene.get(f"{PAGES}?reason=expired", Authorization="editor").text

    assert re.findall(r">0:(\d+)</a>", first + second) == [str(n) for n in range(119, 19, -1)]
    assert f'<a href="{PAGES}?reason=expired">expired <span class="count">60</span></a>' in first
    assert [int(n) % 2 for n in re.findall(r">0:(\d+)</a>", expired)] == [0] * 50
    assert f'<a href="{PAGES}/letter?place=0:119">0:119</a>' in first


def test_a_delay_topic_without_dead_letters_says_so(scene: Scene) -> None:
    scene.letters.records = {}

    page = scene.get(PAGES, Authorization="editor").text

    assert "There are none." in page
    assert "<button" not in page


def test_a_letter_is_sent_again_by_its_page(scene: Scene) -> None:
    page = scene.get(f"{PAGES}/letter?place=0:1", Authorization="editor").text
    answer = form(scene, {"place": "0:1", "deliverAfter": "90s", "deliverAt": ""})

    assert '<input type="hidden" name="place" value="0:1">' in page
    assert scene.letters.asked == [(TOPIC, Choice(SOURCE, timing=Timing(after=Duration("90s"))), [Place(0, 1)], False)]
    assert (answer.status, answer.headers["location"]) == (303, f"{PAGES}?sent=2&before=0&left=0")
    assert "2 dead letters were sent again." in scene.get(answer.headers["location"], Authorization="editor").text


def test_what_was_sent_again_is_offered_no_more(scene: Scene) -> None:
    scene.letters.progress = Progress().with_places([1])

    page, one = (scene.get(each, Authorization="editor").text for each in (PAGES, f"{PAGES}/letter?place=0:1"))

    assert re.findall(r"expired (yes|no) ", texts(page)) == ["no", "yes"]
    assert "<button" not in one


def test_those_of_a_reason_are_counted_before_they_are_sent(scene: Scene) -> None:
    scene.letters.outcome = Outcome(
        [Place(0, 1), Place(0, 4)], {Place(0, 3): "it lacks <b>its</b> value"}, from_first=True
    )

    page = scene.get(f"{PAGES}/resend?reason=expired", Authorization="editor").text
    answer = form(scene, {"reason": "expired"})

    reasons = frozenset({"expired"})
    assert [(each[1], each[3]) for each in scene.letters.asked] == [
        (Choice(SOURCE, reasons), True),
        (Choice(SOURCE, reasons), False),
    ]
    assert "Send 2 again" in page
    assert "No earlier sending is remembered" in page
    assert "it lacks &lt;b&gt;its&lt;/b&gt; value" in page
    assert answer.headers["location"] == f"{PAGES}?reason=expired&sent=2&before=0&left=1"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("sent=1&before=0&left=0", "1 dead letter was sent again."),
        ("sent=0&before=1&left=0", "0 dead letters were sent again. 1 dead letter had been sent again before."),
        ("sent=7&before=0&left=2&more=yes", "2 dead letters cannot be sent again from here: they lack a part. There"),
    ],
)
def test_after_a_sending_its_outcome_is_told(scene: Scene, query: str, sentence: str) -> None:
    assert sentence in texts(scene.get(f"{PAGES}?{query}", Authorization="editor").text)


@pytest.mark.parametrize("query", ["sent=<b>", "sent=٣", f"sent={'9' * 5_000}", "sent=-1"])
def test_no_address_makes_a_page_say_anything_else(scene: Scene, query: str) -> None:
    answer = scene.get(f"{PAGES}?{quote(query, safe='=')}", Authorization="editor")

    assert (answer.status, 'role="status"' in answer.text) == (200, False)


def test_whether_letters_were_sent_is_not_guessed(scene: Scene) -> None:
    scene.letters.progress = None

    found = asked(scene, BASE)

    assert {each["sentAgain"] for each in found["deadLetters"]} == {None}
    assert found["notes"] == [
        "whether they were sent again is not known: the gateway's Kafka login needs READ on group "
        f"delaytopic-resend.{TOPIC}"
    ]


def test_a_delay_topic_leads_to_its_dead_letters(scene: Scene) -> None:
    scene.waiting = {replace(REMINDERS, dead_letter="<b>.dlq"): []}

    page = scene.get("/delaytopics/shop/reminders", Authorization="editor").text

    assert f'<a href="{PAGES}">&lt;b&gt;.dlq</a>' in page
