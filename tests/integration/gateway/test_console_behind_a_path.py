"""The console in a real browser, behind a proxy that has it at a path and takes that away before it asks."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.harness.browser import browser
from tests.support.gateway.gateway import NOW_MS, REMINDERS, Scene, gateway_over

from delaytopic_relay.core.commands import Schedule

__all__ = ["browser"]
pytestmark = pytest.mark.integration

AT: Final = "/tools/delay"
TEA: Final = Schedule(NOW_MS + 3_600_000, 7, b"customer-4", b"tea is ready", [("deliver-id", b"tea")], id=b"tea")
PASSED_ON: Final = ("content-type", "location", "set-cookie", "content-security-policy", "cache-control")


@pytest.fixture
def scene() -> Iterator[Scene]:
    with gateway_over(Scene({REMINDERS: [(2, TEA)]})) as found:
        yield found


@pytest.fixture
def proxy(scene: Scene) -> Iterator[str]:
    """The address of the console at a proxy that has other tools, too: whatever leads past the path finds nothing."""
    gateway = scene.url.removeprefix("http://")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on()

        def do_POST(self) -> None:
            self._pass_on()

        def _pass_on(self) -> None:
            if not self.path.startswith(f"{AT}/"):
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            with closing(http.client.HTTPConnection(gateway, timeout=10)) as upstream:
                upstream.request(self.command, self.path.removeprefix(AT), body, dict(self.headers))
                answer = upstream.getresponse()
                content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() in PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}{AT}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_a_record_is_found_opened_and_cancelled_without_leaving_the_path(page: Page, proxy: str, scene: Scene) -> None:
    failed: list[str] = []
    page.on("response", lambda answer: failed.append(f"{answer.status} {answer.url}") if answer.status >= 400 else None)

    page.goto(proxy)
    page.get_by_role("link", name="shop/reminders").click()
    page.get_by_label("Id begins with").fill("tea")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("row", name="tea").get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Record")
    page.get_by_role("button", name="Cancel this record").click()

    expect(page.get_by_role("status")).to_contain_text("is in the source topic")
    assert page.url.startswith(proxy)
    assert ([topic for topic, _, _ in scene.written], failed) == ([REMINDERS.source], [])
