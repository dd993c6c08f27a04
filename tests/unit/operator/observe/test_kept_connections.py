"""Connections to pods that are kept from one page to the next."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

import pytest
from tests.support.operator.hostile_server import hostile_server
from tests.unit.operator.observe.test_relay_pages import pod

from delaytopic_operator.observe import exchanges
from delaytopic_operator.observe.relay_pages import RelayPages

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"


class Server:
    """Answers the requests of each connection in turn by a list of answers, and ends it after the last of them."""

    def __init__(self, *connections: list[bytes]) -> None:
        self._connections = connections
        self.count = 0
        """The connections that there were."""
        self.ended = Event()
        """Set once the other side has ended a connection."""

    def answer(self, connection: socket.socket, _: Event) -> None:
        answers = self._connections[min(self.count, len(self._connections) - 1)]
        self.count += 1
        for number, each in enumerate(answers):
            if number and not connection.recv(65_536):
                self.ended.set()
                return
            connection.sendall(each)


@contextmanager
def answering(*connections: list[bytes]) -> Iterator[tuple[int, Server]]:
    server = Server(*connections)
    with hostile_server(server.answer) as port:
        yield port, server


def asked(pages: RelayPages, port: int, times: int) -> list[bytes | None]:
    return [pages.fetch(pod("a", port), "/page", 10) for _ in range(times)]


def test_pages_of_one_pod_come_over_one_connection(pages: RelayPages) -> None:
    with answering([PAGE] * 4) as (port, server):
        assert asked(pages, port, 3) == [b"page"] * 3

    assert server.count == 1


@pytest.mark.parametrize(
    "answer",
    [
        PAGE.replace(b"1.1", b"1.0"),
        PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
        PAGE + b"and what nobody asked for",
    ],
    ids=["old", "last", "too much"],
)
def test_no_request_follows_an_answer_that_may_be_the_last(answer: bytes, pages: RelayPages) -> None:
    with answering([answer, PAGE]) as (port, server):
        assert asked(pages, port, 2) == [b"page"] * 2

    assert server.count == 2


@pytest.mark.parametrize("answers", [[PAGE], [PAGE, b""]], ids=["after an answer", "after a request"])
def test_a_pod_that_has_ended_the_connection_is_asked_over_a_new_one(answers: list[bytes], pages: RelayPages) -> None:
    with answering(answers, [PAGE, PAGE]) as (port, server):
        assert asked(pages, port, 3) == [b"page"] * 3

    assert server.count == 2


def test_a_pod_that_ends_a_new_connection_too_is_asked_no_third_time(pages: RelayPages) -> None:
    with answering([PAGE, b""], []) as (port, server):
        assert asked(pages, port, 2) == [b"page", None]

    assert server.count == 2


def test_a_pod_that_has_begun_to_answer_is_not_asked_again(pages: RelayPages) -> None:
    with answering([PAGE, b"HTTP/1.1 2"], [PAGE]) as (port, server):
        assert asked(pages, port, 2) == [b"page", None]

    assert server.count == 1


def test_another_pod_of_the_same_address_is_asked_over_a_connection_of_its_own(pages: RelayPages) -> None:
    with answering([PAGE, PAGE]) as (port, server):
        assert [pages.fetch(pod(name, port), "/page", 10) for name in ("a", "b")] == [b"page"] * 2

    assert server.count == 2


def test_a_connection_that_nobody_has_used_for_long_is_closed(
    pages: RelayPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchanges, "KEPT_S", 0.0)
    with answering([PAGE, PAGE]) as (port, server), answering([PAGE, PAGE]) as (other, _):
        asked(pages, port, 1)
        asked(pages, other, 1)

        assert server.ended.wait(10)


def test_no_more_connections_are_kept_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "MOST_KEPT", 1)
    pages = RelayPages(poll_s=15.0)
    with answering([PAGE] * 3) as (port, server), answering([PAGE] * 3) as (other, closed):
        found = [pages.fetch(pod("a", each), "/page", 10) for each in (port, other, port, other)]
        pages.close()

    assert (found, server.count, closed.count) == ([b"page"] * 4, 1, 2)


def test_all_connections_can_be_closed(pages: RelayPages) -> None:
    with answering([PAGE, PAGE]) as (port, server):
        asked(pages, port, 1)

        pages.close()

        assert server.ended.wait(10)
