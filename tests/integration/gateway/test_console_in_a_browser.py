"""The console in a real browser, as people use it: with a mouse, by keyboard alone, on a phone, and without scripts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Browser, Page, expect
from tests.harness.browser import browser
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.local.session import LocalSession, local_session
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent

__all__ = ["browser"]
pytestmark = pytest.mark.integration

DESKTOP: Final[Any] = {"width": 1_280, "height": 900}
PHONE: Final[Any] = {"width": 390, "height": 844}
LATER: Final = [("deliver-after", "1h")]


@pytest.fixture(scope="module")
def session(
    kafka: KafkaAddress, redis: RedisAddress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalSession]:
    with local_session(tmp_path_factory.mktemp("local"), kafka.bootstrap_servers, redis.url) as found:
        yield found


@pytest.fixture
def page(browser: Browser, session: LocalSession) -> Iterator[Page]:
    """A window in which no script runs, whoever wrote it."""
    context = browser.new_context(viewport=DESKTOP, java_script_enabled=False, base_url=session.url)
    yield context.new_page()
    context.close()


def pending(session: LocalSession, prefix: str, *names: str) -> list[Sent]:
    """Let records wait for an hour, and until they are listed."""
    records = [
        Sent(b"customer", f"{prefix}-{name}".encode(), [*LATER, ("deliver-id", f"{prefix}-{name}".encode())])
        for name in names
    ]
    session.send(records)
    return records


def find(page: Page, session: LocalSession, record: str) -> None:
    """Search a record by its id and open it; what was sent just now is listed when a relay has read it."""

    def listed() -> bool:
        page.goto(session.page)
        page.get_by_label("Id begins with").fill(record)
        page.get_by_role("button", name="Search").click()
        return page.get_by_role("row", name=record).count() == 1

    wait_for(listed, lambda: page.inner_text("main"))
    page.get_by_role("row", name=record).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Record")


def act(page: Page, session: LocalSession, record: str, button: str, **fields: str) -> None:
    """Open a record and press a button; again while the page says that relays are behind with reading."""

    def done() -> bool:
        find(page, session, record)
        for label, text in fields.items():
            page.get_by_label(label.replace("_", " ")).fill(text)
        page.get_by_role("button", name=button).click()
        behind = page.get_by_role("alert").filter(has_text="still to read")
        return behind.count() == 0

    wait_for(done, lambda: page.inner_text("main"))
    expect(page.get_by_role("status")).to_contain_text("is in the source topic")


def press(page: Page, key: str, until: Callable[[], bool]) -> None:
    """Press a key until the focus is where it is wanted."""
    for _ in range(60):
        if until():
            return
        page.keyboard.press(key)
    raise AssertionError(f"{key} leads nowhere: {page.inner_text('main')}")


def focused(page: Page, role: str, name: str) -> Callable[[], bool]:
    wanted = page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]  # any role
    return lambda: wanted.count() == 1 and bool(wanted.evaluate("element => element === document.activeElement"))


def test_records_are_searched_moved_released_and_cancelled(page: Page, session: LocalSession) -> None:
    pending(session, "mouse", "moved", "released", "cancelled", "stays")

    act(page, session, "mouse-moved", "Move", Deliver_after="2h")
    act(page, session, "mouse-released", "Release now")
    act(page, session, "mouse-cancelled", "Cancel this record")

    wait_for(lambda: "mouse-released" in session.values(session.target), page.content)

    def listed() -> list[str]:
        page.goto(f"{session.page}?idPrefix=mouse")
        return [" ".join(row.inner_text().split()) for row in page.locator("tbody").last.locator("tr").all()]

    wait_for(lambda: len(listed()) == 2, page.content)
    stays, moved = listed()
    assert re.search(r"in (59m\d*s?|1h) .* mouse-stays", stays)
    assert re.search(r"in 1h59m .* mouse-moved", moved)
    assert [each for each in session.values(session.target) if each.startswith("mouse")] == ["mouse-released"]


@pytest.mark.nightly  # each day one is sent again by REST
def test_a_dead_letter_is_sent_again_with_a_time_that_mends_it(page: Page, session: LocalSession) -> None:
    session.send(
        [Sent(b"k", b"letter-1", [("deliver-at", b"soon")], 0), Sent(b"k", b"letter-2", [("deliver-at", b"x")], 0)]
    )
    wait_for(lambda: len(session.read(session.dead_letter)) >= 2, page.content)

    page.goto(session.page)
    page.get_by_role("link", name=session.dead_letter).click()
    page.get_by_role("link", name="malformed-header").first.click()
    page.get_by_role("row", name="'soon'").get_by_role("link").click()
    page.get_by_label("Deliver after").fill("1ms")
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("status")).to_have_text("1 dead letter was sent again.")
    page.get_by_role("link", name="malformed-header").first.click()
    page.get_by_role("button", name="Send those of malformed-header again").click()
    page.get_by_label("Deliver after").fill("1ms")
    page.get_by_role("button", name="Send 1 again").click()
    expect(page.get_by_role("status")).to_have_text("1 dead letter was sent again.")

    wait_for(lambda: {"letter-1", "letter-2"} <= {*session.values(session.target)}, page.content)
    assert [each for each in session.values(session.target) if each.startswith("letter")] == ["letter-1", "letter-2"]
    assert [each for each in session.values(session.dead_letter) if each.startswith("letter")] == [
        "letter-1",
        "letter-2",
    ]
    expect(page.locator("tbody").get_by_role("row", name="yes")).to_have_count(2)


def test_everything_is_reached_by_keyboard_alone(page: Page, session: LocalSession) -> None:
    pending(session, "keys", "released")
    find(page, session, "keys-released")
    page.goto(session.url)

    page.keyboard.press("Tab")
    skip = focused(page, "link", "Skip to content")
    assert skip()
    press(page, "Tab", focused(page, "link", f"shop/{session.name}"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"shop/{session.name}")
    press(page, "Tab", focused(page, "textbox", "Id begins with"))
    page.keyboard.type("keys-released")
    page.keyboard.press("Enter")
    row = page.get_by_role("row", name="keys-released").get_by_role("link")
    press(page, "Tab", focused(page, "link", row.inner_text()))
    assert row.evaluate("element => getComputedStyle(element).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    press(page, "Tab", focused(page, "button", "Release now"))
    page.keyboard.press("Enter")

    expect(page.get_by_role("status")).to_contain_text("The new time is in the source topic")
    wait_for(lambda: "keys-released" in session.values(session.target), page.content)


# What a page of any width owes to those who cannot see it well. The ratio is that of WCAG for text, colours as they are
# shown over what is behind them.
FAULTS = """() => {
  const faults = [];
  const shown = element => element.getClientRects().length > 0;
  const name = element => element.outerHTML.slice(0, 90);
  if (document.documentElement.lang !== "en") faults.push("no language");
  if (!document.title) faults.push("no title");
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) faults.push("scrolls sideways");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(each => Number(each.tagName[1]));
  if (levels.filter(level => level === 1).length !== 1) faults.push("not one h1");
  levels.forEach((level, at) => { if (level > (levels[at - 1] ?? 0) + 1) faults.push("headings skip to h" + level); });
  document.querySelectorAll("input:not([type=hidden]), textarea, select").forEach(
    each => { if (!each.labels.length) faults.push("no label: " + name(each)); });
  document.querySelectorAll("a[href], button").forEach(
    each => { if (!each.textContent.trim()) faults.push("no name: " + name(each)); });
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => {
    const [r, g, b] = channels(colour).map(each => each / 255).map(
      each => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (colour.startsWith("rgb") && (channels(colour)[3] ?? 1) === 1) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !shown(element) || element.closest("svg")) continue;
    const [above, below] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(above, below) + 0.05) / (Math.min(above, below) + 0.05);
    if (ratio < 4.5) faults.push("contrast " + ratio.toFixed(1) + ": " + name(element));
  }
  return faults;
}"""


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light", marks=pytest.mark.nightly),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.nightly),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.nightly),
    ],
)
def test_every_page_can_be_read_by_everybody(
    browser: Browser, session: LocalSession, page: Page, viewport: Any, scheme: Any
) -> None:
    pending(session, "page", "one")
    session.send([Sent(b"k" * 200, b"x" * 300, [("deliver-at", b"never" * 30)], 0)])
    wait_for(lambda: session.values(session.dead_letter), page.content)
    find(page, session, "page-one")
    addresses = [
        "/",
        session.page,
        page.url,
        f"{session.page}/dead-letters",
        f"{session.page}/dead-letters/letter?place=0:0",
        f"{session.page}/dead-letters/resend?reason=malformed-header",
        f"{session.page}/record?place=1:2:3",
    ]

    with browser.new_context(viewport=viewport, color_scheme=scheme, base_url=session.url) as context:
        window = context.new_page()
        found, titles = {}, []
        for address in addresses:
            window.goto(address)
            found[address] = window.evaluate(FAULTS)
            titles.append(window.title())

    assert {address: faults for address, faults in found.items() if faults} == {}
    assert len({*titles}) == len(titles)


RATE: Final = 1_000
LONGEST_DELAY_S: Final = 5


@contextmanager
def flowing(session: LocalSession) -> Iterator[list[str]]:
    """Send so many records a second, due within seconds, while the body runs; yields what was sent."""
    sent, ended = list[str](), Event()
    producer = Producer({"bootstrap.servers": session.broker, "enable.idempotence": True, "linger.ms": 5})

    def send() -> None:
        began = time.monotonic()
        while not ended.wait(0.05):
            for number in range(len(sent), int((time.monotonic() - began) * RATE)):
                headers: Any = [("deliver-after", f"{1 + number % LONGEST_DELAY_S}s"), ("deliver-id", f"flow-{number}")]
                producer.produce(session.source, f"flow-{number}", f"key-{number}", headers=headers)
                sent.append(f"flow-{number}")
            producer.poll(0)
        producer.flush(60)

    sender = Thread(target=send)
    sender.start()
    try:
        yield sent
    finally:
        ended.set()
        sender.join()


@pytest.mark.nightly
def test_under_a_thousand_records_a_second_people_do_what_they_like_and_each_record_arrives_once(
    kafka: KafkaAddress, redis: RedisAddress, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("load")
    with (
        local_session(folder, kafka.bootstrap_servers, redis.url) as session,
        browser.new_context(viewport=DESKTOP, java_script_enabled=False, base_url=session.url) as context,
    ):
        page = context.new_page()
        with flowing(session) as sent:
            pending(session, "load", "moved", "released", "cancelled", "stays")
            session.send([Sent(b"k", b"load-letter", [("deliver-at", b"soon")], 0)])
            act(page, session, "load-moved", "Move", Deliver_after="20s")
            act(page, session, "load-released", "Release now")
            act(page, session, "load-cancelled", "Cancel this record")
            page.goto(f"{session.page}/dead-letters")
            page.get_by_role("row", name="malformed-header").get_by_role("link").click()
            page.get_by_label("Deliver after").fill("1s")
            page.get_by_role("button", name="Send again").click()
            expect(page.get_by_role("status")).to_have_text("1 dead letter was sent again.")
            wait_for(lambda: len(sent) >= 30 * RATE, lambda: f"{len(sent)} were sent", timeout_s=300)
        arrive = sorted([*sent, "load-moved", "load-released", "load-letter"])
        wait_for(lambda: len(session.read(session.target)) >= len(arrive), page.content, timeout_s=300)

        assert session.values(session.target) == arrive
        assert session.values(session.dead_letter) == ["load-letter"]
        page.goto(session.page)
        expect(page.locator("tbody").last.locator("tr")).to_have_count(1)
        expect(page.get_by_role("row", name="load-stays")).to_have_count(1)
