"""The pages for people: what they show, what their forms do, and that strangers' texts stay texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_gateway.console.pages import MOST_SHOWN_BYTES, View, due_curve, views_of
from delaytopic_gateway.documents import DelayTopicDocument, DueCount
from delaytopic_relay.core.commands import Schedule

HOUR_MS = 3_600_000
PAGE = "/delaytopics/shop/reminders"
PLACE = f"{NOW_MS + HOUR_MS}:2:7"
TEA = Schedule(
    NOW_MS + HOUR_MS, 7, b"customer-4", b'{"tea": "<b>"}', [("trace", b"<script>"), ("deliver-id", b"a")], id=b"a"
)
HOSTILE = Schedule(
    NOW_MS + 2 * HOUR_MS, 9, b"<script>alert(1)</script>\x1b[2J", b"\xff\x00", [("<i>", None)], target="<b>t</b>"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Scene]:
    with gateway_over(Scene()) as found:
        yield found


@pytest.fixture
def scene(served: Scene) -> Scene:
    return served.begin({REMINDERS: [(2, TEA), (3, HOSTILE)]})


def texts(page: str) -> str:
    """Return the text that a reader sees, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_first_page_leads_to_each_delay_topic(scene: Scene) -> None:
    page = scene.get("/").text

    assert f'<a href="{PAGE}">shop/reminders</a>' in page
    assert "shop/reminders shop.reminders.delayed &rarr; shop.reminders 2 0" in texts(page)


def test_a_delay_topic_shows_when_its_records_are_due_and_which_they_are(scene: Scene) -> None:
    page = scene.get(PAGE).text

    assert f'<a href="{PAGE}/record?place={PLACE}">2:7</a>' in page
    assert "in 1h 2:7 a customer-4 shop.reminders 14" in texts(page)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("idPrefix=a", ["2:7"]),
        ("idPrefix=b", []),
        ("keyPrefix=customer", ["2:7"]),
        ("dueFrom=90m", ["3:9"]),
        ("dueFrom=now&dueBefore=90m", ["2:7"]),
        ("dueFrom=&dueBefore=", ["2:7", "3:9"]),
    ],
)
def test_a_search_shows_what_fits(scene: Scene, query: str, found: list[str]) -> None:
    assert re.findall(r">(\d+:\d+)</a>", scene.get(f"{PAGE}?{query}").text) == found


def test_a_long_list_leads_to_its_next_page(scene: Scene) -> None:
    scene.waiting[REMINDERS] = [(0, Schedule(NOW_MS + n, n, b"k%d" % n, b"v", None)) for n in range(60)]

    first = scene.get(f"{PAGE}?keyPrefix=k").text
    (link,) = re.findall(r'<a href="([^"]+)" rel="next">', first)
    second = scene.get(link.replace("&amp;", "&")).text

    assert re.findall(r">0:(\d+)</a>", first + second) == [str(n) for n in range(60)]
    assert 'rel="next"' not in second


def test_a_record_shows_its_value_as_what_it_is(scene: Scene) -> None:
    page = scene.get(f"{PAGE}/record?place={PLACE}").text

    assert "&#34;tea&#34;: &#34;&lt;b&gt;&#34;" in page
    assert "trace &lt;script&gt; deliver-id a" in texts(page)


def test_texts_of_strangers_stay_texts(scene: Scene) -> None:
    pages = [scene.get(PAGE).text, scene.get(f"{PAGE}/record?place={NOW_MS + 2 * HOUR_MS}:3:9").text]

    for page in pages:
        assert not re.search(r"<(script|b|i)>", page)
        assert "\x1b" not in page
        assert "&lt;b&gt;t&lt;/b&gt;" in page


def test_pages_load_nothing_from_elsewhere_and_run_nothing(scene: Scene) -> None:
    answer = scene.get(PAGE)

    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.search(r"<script|\sstyle=|\son\w+=|https?://", answer.text)
    assert scene.get("/console.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("action", "form", "written"),
    [
        ("cancel", {"place": PLACE}, ("deliver-action", b"cancel")),
        ("move", {"place": PLACE, "deliverAfter": "2h"}, ("deliver-at", b"%d" % (NOW_MS + 2 * HOUR_MS))),
        ("move", {"place": PLACE, "deliverAfter": "", "now": "yes"}, ("deliver-at", b"%d" % NOW_MS)),
        ("schedule", {"deliverAfter": "90s", "id": "", "value": "tea"}, ("deliver-after", b"90s")),
    ],
)
def test_a_form_writes_and_leads_back(
    scene: Scene, action: str, form: dict[str, str], written: tuple[str, bytes]
) -> None:
    answer = scene.send("POST", f"{PAGE}/{action}", urlencode(form).encode(), Origin=scene.url)
    (record,) = [record for _, record, _ in scene.written]

    assert (answer.status, record.headers[-1]) == (303, written)
    assert 'role="status"' in scene.get(answer.headers["location"]).text


@pytest.mark.parametrize(
    ("action", "form", "status", "message"),
    [
        ("cancel", {"place": "1:2"}, 400, "place: it is due time, partition and offset"),
        ("cancel", {"place": f"{NOW_MS}:2:7"}, 404, "the record 2:7 is no longer pending in shop/reminders"),
        ("cancel", {"place": f"{NOW_MS + 2 * HOUR_MS}:3:9"}, 409, "this record has no id"),
        ("move", {"place": PLACE}, 400, "say when the record is due"),
        ("move", {"place": PLACE, "deliverAt": "soon"}, 400, "deliverAt: &#34;soon&#34; is not a time"),
        ("schedule", {"id": "x" * 300}, 400, "id: String should have at most 256 characters"),
        ("burn", {}, 400, "there is no burn here"),
    ],
)
def test_a_form_that_cannot_be_carried_out_shows_the_reason(
    scene: Scene, action: str, form: dict[str, str], status: int, message: str
) -> None:
    answer = scene.send("POST", f"{PAGE}/{action}", urlencode(form).encode(), Accept="text/html")

    assert (answer.status, scene.written) == (status, [])
    assert message in answer.text
    assert 'role="alert"' in answer.text


def test_forms_of_other_sites_are_refused(scene: Scene) -> None:
    answer = scene.send("POST", f"{PAGE}/cancel", urlencode({"place": PLACE}).encode(), Origin="http://site.example")

    assert (answer.status, scene.written) == (403, [])


def test_the_due_curve_has_a_bar_for_each_span_and_one_for_later() -> None:
    spans = [DueCount(ahead_ms=1_000, records=2), DueCount(ahead_ms=60_000, records=4)]
    topic = DelayTopicDocument(
        namespace="n",
        name="n",
        source="s",
        target="t",
        dead_letter="d",
        dialect="Native",
        can_schedule=True,
        can_cancel=True,
        can_move=True,
        pending=7,
        due_histogram=spans,
    )

    curve = due_curve(topic)

    assert [(bar.name, bar.records) for bar in curve.bars] == [("1s", 2), ("1m", 4), ("later", 1)]
    assert curve.label == "2 within 1s; 4 within 1m; 1 later"
    assert max(bar.height for bar in curve.bars) == curve.bars[1].height


@pytest.mark.parametrize(
    ("value", "views"),
    [
        (None, []),
        (b"tea\x1b", [View("Text", "tea\\u001b")]),
        (b"[1]", [View("JSON", "[\n  1\n]"), View("Text", "[1]")]),
        (b"7", [View("Text", "7")]),
        (b"\xffab", [View("Hexadecimal", f"00000000  {'ff 61 62':<47}  .ab")]),
        (b"[" * 10_000, [View("Text", "[" * 10_000)]),
    ],
)
def test_a_value_is_shown_as_json_text_or_hexadecimal(value: bytes | None, views: list[View]) -> None:
    assert [*views_of(value)] == views


def test_a_long_value_is_cut() -> None:
    (view,) = views_of("ä".encode() * MOST_SHOWN_BYTES)

    assert (view.name, len(view.text)) == ("Text (the first 65,536 of 131,072 bytes)", MOST_SHOWN_BYTES // 2)
