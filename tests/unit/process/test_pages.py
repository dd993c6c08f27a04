"""Connections to pages: how long they stay, and how many there are."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection
from threading import Event

import pytest

from delaytopic_process import pages as module
from delaytopic_process.pages import Answer, Pages, Request, text_answer
from delaytopic_process.waiting import wait_until

GET = b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n"


def answering(request: Request) -> Answer:
    status = HTTPStatus(int(request.parameters or 200))
    return text_answer(status, f"page {request.parameters}".strip())


def failing(request: Request) -> Answer:
    raise ValueError("a bug")


@contextmanager
def serving(**more: Callable[[Request], Answer]) -> Iterator[Pages]:
    served = Pages("test", "127.0.0.1", 0, {"/page": answering, "/bug": failing})
    for name, page in more.items():
        served.add(f"/{name}", page)
    served.start()
    try:
        yield served
    finally:
        served.stop()


@pytest.fixture
def served() -> Iterator[Pages]:
    with serving() as found:
        yield found


def connected(to: Pages) -> socket.socket:
    return socket.create_connection(("127.0.0.1", to.port), timeout=10)


def waiting(served: Pages) -> int:
    """Return how many connections wait for a request: a client has its answer a moment before the server notes that."""
    assert served._server is not None
    return len(served._server.connections._waiting)


def until_the_end(connection: socket.socket) -> bytes:
    """Return what comes until the server ends the connection; it fails by a timeout where that does not happen."""
    return b"".join(iter(lambda: connection.recv(65_536), b""))


def bodies(answers: bytes) -> list[bytes]:
    return [each.partition(b"\r\n\r\n")[2] for each in answers.split(b"HTTP/1.1 ")[1:]]


def ask(connection: HTTPConnection, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection.request(method, path)
    response = connection.getresponse()
    return response.status, response.read()


def test_one_connection_takes_one_request_after_the_other_whatever_the_answers_are(served: Pages) -> None:
    client = HTTPConnection("127.0.0.1", served.port, timeout=10)
    client.connect()
    before = client.sock

    found = [ask(client, path) for path in ("/page", "/page?503", "/bug", "/page")]
    found += [ask(client, "/page", "HEAD"), ask(client, "/page")]

    assert found == [
        (200, b"page\n"),
        (503, b"page 503\n"),
        (500, b"ValueError: see the log\n"),
        (200, b"page\n"),
        (200, b""),
        (200, b"page\n"),
    ]
    assert client.sock is before
    client.close()


def test_requests_that_come_together_are_answered_in_their_order(served: Pages) -> None:
    with connected(served) as client:
        client.sendall(GET + GET.replace(b"/page", b"/page?404") + GET)
        client.shutdown(socket.SHUT_WR)

        assert bodies(until_the_end(client)) == [b"page\n", b"page 404\n", b"page\n"]


def test_an_answer_is_one_piece(served: Pages) -> None:
    with connected(served) as client:
        client.sendall(GET)

        assert client.recv(65_536).endswith(b"\r\n\r\npage\n")


@pytest.mark.parametrize(
    "last",
    [
        b"GET /page HTTP/1.0\r\n\r\n",
        b"GET /page HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        b"GET /page HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /page HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /",
        b"GET /page HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /page HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nGET /",
    ],
    ids=["old", "old but kept", "last of its own will", "body", "chunks", "two lengths"],
)
def test_a_request_that_no_other_may_follow_is_the_last(last: bytes, served: Pages) -> None:
    with connected(served) as client:
        client.sendall(GET + last)
        answers = until_the_end(client)

    assert bodies(answers) == [b"page\n", b"page\n"]
    assert answers.count(b"Connection: close\r\n") == 1


def test_a_request_that_is_refused_is_the_last(served: Pages) -> None:
    with connected(served) as client:
        client.sendall(GET + b"POST /page HTTP/1.1\r\nContent-Length: 5\r\n\r\nGET /")
        answers = until_the_end(client).split(b"HTTP/1.1 ")[1:]

    assert [each[:3] for each in answers] == [b"200", b"501"]
    assert b"Connection: close\r\n" in answers[1]


def test_a_connection_that_is_silent_for_long_is_ended(served: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.05)
    with connected(served) as client:
        client.sendall(GET)

        assert bodies(until_the_end(client)) == [b"page\n"]


def test_a_further_request_that_begins_and_does_not_go_on_is_not_waited_for_longer_than_the_first(
    served: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SLOW_CLIENT_SECONDS", 0.05)
    with connected(served) as client:
        client.sendall(GET + b"GET /pa")

        assert bodies(until_the_end(client)) == [b"page\n"]


def test_one_connection_too_many_ends_the_one_that_has_waited_for_longest_and_none_that_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = Event(), Event()

    def slow(request: Request) -> Answer:
        begun.set()
        go_on.wait(10)
        return text_answer(HTTPStatus.OK, "slow")

    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    with serving(slow=slow) as served, ExitStack() as stack:

        def come(request: bytes) -> socket.socket:
            client = stack.enter_context(connected(served))
            client.sendall(request)
            return client

        answered = come(GET.replace(b"/page", b"/slow"))
        assert begun.wait(10)
        silent = come(GET)
        assert silent.recv(65_536).endswith(b"page\n")
        assert wait_until(lambda: waiting(served) == 1, timeout_seconds=10)
        kept = come(GET)
        assert kept.recv(65_536).endswith(b"page\n")
        assert wait_until(lambda: waiting(served) == 2, timeout_seconds=10)

        # One too many: each of the three has asked by now, and one alone is not answered yet.
        assert come(GET).recv(65_536).endswith(b"page\n")
        go_on.set()

        assert until_the_end(silent) == b""
        assert answered.recv(65_536).endswith(b"slow\n")
        kept.sendall(GET)
        assert kept.recv(65_536).endswith(b"page\n")


def test_the_stop_ends_connections_that_wait_for_a_request(served: Pages) -> None:
    with connected(served) as client:
        client.sendall(GET)
        assert client.recv(65_536).endswith(b"page\n")

        served.stop()

        assert until_the_end(client) == b""
