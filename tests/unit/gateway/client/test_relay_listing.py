"""Tests that what stands at a relay's address may be anything: each address has an answer, or the reason why not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from socketserver import StreamRequestHandler, TCPServer

import pytest
from tests.support.outer_address import outer_address
from tests.support.relay.backlog.listings import pending_list
from tests.support.relay.statuses import relay_status

from delaytopic_gateway.client.relay_listing import RelayAnswer, ask_relays
from delaytopic_relay.telemetry.server import Health, PageServer, Readers


@contextmanager
def answering(data: bytes) -> Iterator[str]:
    """Serve these bytes to whoever asks, and hang up."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(data)

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


NO_LIST = "answered with something else than a list of what is pending: no relay's address?"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", "does not answer: SSH-2.0-OpenSSH_9.6", id="no-http"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", NO_LIST, id="cut-off"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n[]", NO_LIST, id="another-document"),
        pytest.param(
            b"HTTP/1.1 302 Away\r\nLocation: http://127.0.0.1:1/\r\n\r\naway", "answered 302: away", id="sent-elsewhere"
        ),
        pytest.param(b"HTTP/1.1 503 Busy\r\n\r\nlater\x1b[m", "answered 503: later [m", id="refused"),
    ],
)
def test_what_is_no_list_is_a_problem_of_its_address(data: bytes, problem: str) -> None:
    with answering(data) as url:
        assert ask_relays([url], {"limit": 1}) == [RelayAnswer(url, problem=problem)]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_loopback_address_is_asked_itself_and_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    with answering(b"HTTP/1.1 503 Busy\r\n\r\nlater") as address:
        url = address.replace("127.0.0.1", host)

        assert ask_relays([url], {}) == [RelayAnswer(url, problem="answered 503: later")]


def test_another_address_is_asked_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    with answering(b"HTTP/1.1 503 Busy\r\n\r\nby proxy") as proxy:
        monkeypatch.setenv("http_proxy", proxy)

        assert ask_relays(["http://relay.test"], {}) == [
            RelayAnswer("http://relay.test", problem="answered 503: by proxy")
        ]


def test_a_relay_elsewhere_answers_for_the_token_that_it_knows_and_no_proxy_sees_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    healthy, found = Health(True, "running"), pending_list()
    server = PageServer(
        "0.0.0.0",
        0,
        health=lambda: healthy,
        readiness=lambda: healthy,
        metrics=bytes,
        status=relay_status,
        pending=lambda _: found,
        readers=Readers(token_sha256=sha256(b"token").hexdigest()),
    )
    server.start()
    url = f"http://{outer_address()}:{server.port}"
    try:
        (known,), (unknown,) = (ask_relays([url], {}, token) for token in ("token", "tokens"))
    finally:
        server.stop()

    assert known == RelayAnswer(url, found)
    assert unknown.problem is not None
    assert unknown.problem.startswith("answered 403: the list of what is pending is for clients at a loopback address")
