"""Pages behind a path of a proxy: every address on them leads to the gateway, by the proxy."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import pytest
from tests.support.gateway.dead_letters import stored
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_relay.core.commands import Schedule

BEFORE = "http://proxy.example/tools/delay"
PAGE = "/delaytopics/shop/reminders"
TEA = Schedule(NOW_MS + 3_600_000, 7, b"k", b"v", None, id=b"tea")


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    found = Scene({REMINDERS: [(2, TEA)]})
    found.letters.records[REMINDERS.dead_letter] = [stored("0:1", REMINDERS.source)]
    with gateway_over(found):
        yield found


@pytest.mark.parametrize(
    "path",
    [
        "/",
        PAGE,
        f"{PAGE}/record?place={TEA.due_ms}:2:7",
        f"{PAGE}/dead-letters",
        f"{PAGE}/dead-letters/letter?place=0:1",
        f"{PAGE}/dead-letters/resend",
        "/delaytopics/shop/none",
        "/delaytopics/shop%2Fnone/at/all",
    ],
)
def test_each_address_of_a_page_leads_to_the_gateway_behind_a_path(scene: Scene, path: str) -> None:
    request = urllib.request.Request(scene.url + path, headers={"Accept": "text/html"})
    try:
        answer = urllib.request.urlopen(request, timeout=10)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        addresses = re.findall('(?:href|action)="([^"]*)"', answer.read().decode())

    led = {unescape(urljoin(BEFORE + path, each)) for each in addresses if not each.startswith(("data:", "#"))}
    assert {each.partition("/tools/delay/")[0] for each in led} == {"http://proxy.example"}
    paths = {"/" + each.partition("/tools/delay/")[2] for each in led}
    assert {"/", "/console.css", "/openapi.json"} <= paths
    # Forms that write are not asked for by GET.
    assert [each for each in paths if scene.get(each, Accept="text/html").status not in (200, 405)] == []
