"""The pages on how schedules ended, in a real browser, over outcomes that the test tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.harness.browser import browser
from tests.integration.gateway.test_console_in_a_browser import DESKTOP, FAULTS, PHONE
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_relay.core.commands import Schedule

__all__ = ["browser"]
pytestmark = pytest.mark.integration

PAGE = "/delaytopics/shop/reminders"
KEEPS = replace(REMINDERS, outcomes="shop.reminders.outcomes")
TEA = Schedule(NOW_MS + 3_600_000, 7, b"a", b"tea", [("deliver-id", b"a")], id=b"a")


def ended(ending: Ending, name: str, offset: int, **more: Any) -> tuple[int, Outcome]:
    source = RecordPlace(topic=REMINDERS.source, partition=2, offset=offset)
    return 2, Outcome(outcome=ending, id=name, due_ms=NOW_MS, ended_ms=NOW_MS, source=source, **more)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with gateway_over(Scene({KEEPS: [(2, TEA)]})) as found:
        by = RecordPlace(topic=REMINDERS.source, partition=2, offset=7)
        found.outcomes.told += [
            ended(Ending.CANCELLED, "a", 3, ended_by=by, requested_by="x" * 200),
            ended(Ending.REPLACED, "a", 5, ended_by=by, requested_by="shop-desk"),
            ended(Ending.DEAD_LETTERED, "a", 6, reason="target-forbidden", target=by),
            ended(Ending.DELIVERED, "b", 1, target=RecordPlace(topic="shop.reminders", partition=2, offset=40)),
            ended(Ending.NOT_PENDING, "b", 8, requested_by="bob"),
        ]
        yield found


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light", marks=pytest.mark.nightly),
        pytest.param(PHONE, "dark", id="phone-dark"),
    ],
)
def test_the_life_of_an_id_can_be_read_by_everybody(browser: Browser, scene: Scene, viewport: Any, scheme: Any) -> None:
    addresses = [PAGE, f"{PAGE}/record?id=a", f"{PAGE}/record?id=b"]
    with browser.new_context(viewport=viewport, color_scheme=scheme, base_url=scene.url) as context:
        window, found = context.new_page(), {}
        for address in addresses:
            window.goto(address)
            found[address] = window.evaluate(FAULTS)

    assert found == {address: [] for address in addresses}


def test_an_id_is_looked_up_by_a_form(browser: Browser, scene: Scene) -> None:
    with browser.new_context(viewport=DESKTOP, java_script_enabled=False, base_url=scene.url) as context:
        page = context.new_page()
        page.goto(PAGE)
        page.get_by_label("Id, pending or ended").fill("b")
        page.get_by_role("button", name="Look").click()

        expect(page.get_by_role("heading", level=1)).to_have_text("Id b")
        expect(page.locator("dl")).to_contain_text("delivered")
        expect(page.locator("tbody tr")).to_have_count(2)
