"""Pages that are read along with another DelayTopic's: whose, when, and for how long they count."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from socket import socket
from threading import Event
from time import monotonic

import pytest
from tests.support.operator.hostile_server import hostile_server
from tests.unit.operator.observe.test_kept_connections import answering
from tests.unit.operator.observe.test_relay_pages import pod, status_page

from delaytopic_operator.observe import pages_ahead
from delaytopic_operator.observe.exchanges import Peer
from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.pages_ahead import MOST_BYTES, MOST_OF_FLEET, MOST_PODS, Answers, Fleet, PagesAhead
from delaytopic_operator.observe.relay_pages import RelayPages

POLL_S = 15.0
SOON_S = 14.9
"""The time at which all that were asked for at second 0 are looked at soon."""


def fleet(name: str, pods: int = 1) -> Fleet:
    return tuple(Peer(f"{name}-{number}", "http://10.0.0.1:8080") for number in range(pods))


A, B, C = fleet("a"), fleet("b"), fleet("c")


def told(of: Fleet) -> list[bytes]:
    return [peer.pod.encode() for peer in of]


def asked_alone(*fleets: Fleet, at_s: float = 0.0) -> PagesAhead:
    """Return what is known once each of these has answered, in this order."""
    ahead = PagesAhead(POLL_S)
    for each in fleets:
        ahead.note(each, told(each), at_s)
    return ahead


def read_along(ahead: PagesAhead, of: Fleet, answers: dict[Fleet, Answers], at_s: float) -> object:
    """Ask for a fleet and those along with it; those answer whole that have no other answer here."""
    along = ahead.begin(of, at_s)
    return ahead.end(of, {each: answers.get(each, told(each)) for each in (of, *along)}, at_s)


def test_those_that_are_looked_at_soon_are_read_along() -> None:
    ahead = asked_alone(A, B, C)
    ahead.note(C, told(C), 5.0)

    assert ahead.begin(A, SOON_S) == [B]


def test_nobody_is_read_along_with_one_that_has_not_answered_alone() -> None:
    assert asked_alone(A, B).begin(C, SOON_S) == []


def test_what_was_read_ahead_is_taken_once() -> None:
    ahead = asked_alone(A, B)

    assert read_along(ahead, A, {}, SOON_S) == told(A)
    assert [ahead.take(B, SOON_S + 0.5), ahead.take(B, SOON_S + 0.5)] == [told(B), None]


def test_one_whose_page_was_taken_is_read_along_again_before_its_next_look() -> None:
    ahead = asked_alone(A, B)
    read_along(ahead, A, {}, SOON_S)
    ahead.take(B, SOON_S)

    assert [ahead.begin(A, 2 * SOON_S - 1.0), ahead.begin(A, 2 * SOON_S)] == [[], [B]]


def test_a_page_that_is_a_second_old_is_not_taken() -> None:
    ahead = asked_alone(A, B)
    read_along(ahead, A, {}, SOON_S)

    assert ahead.take(B, SOON_S + 1.1) is None


def test_one_whose_look_did_not_come_is_read_along_no_more() -> None:
    ahead = asked_alone(A, B, C)
    read_along(ahead, A, {}, SOON_S)
    ahead.take(C, SOON_S)

    assert ahead.begin(A, 2 * SOON_S) == [C]
    ahead.end(A, {}, 2 * SOON_S)
    assert ahead.begin(B, 2 * SOON_S) == []


def test_one_whose_page_still_counts_is_not_read_along() -> None:
    ahead = asked_alone(A, B)
    read_along(ahead, A, {}, SOON_S)

    assert ahead.begin(A, SOON_S + 0.5) == []


@pytest.mark.parametrize("answer", [None, TimeoutError(), ValueError("too much")], ids=["none", "failed", "too much"])
def test_one_that_does_not_answer_is_read_alone_until_it_does(answer: OSError | ValueError | None) -> None:
    ahead = asked_alone(A, B)

    assert read_along(ahead, A, {B: [answer]}, SOON_S) == told(A)
    assert (ahead.take(B, SOON_S), ahead.begin(A, 2 * SOON_S)) == (None, [])
    ahead.note(B, told(B), SOON_S)
    assert ahead.begin(A, 2 * SOON_S) == [B]


def test_one_that_does_not_answer_as_soon_as_others_have_to_is_not_whole() -> None:
    ahead = asked_alone(A, B)

    assert read_along(ahead, A, {A: [None]}, SOON_S) is None
    assert ahead.begin(A, SOON_S) == []


def test_while_one_is_read_with_others_the_next_is_read_alone() -> None:
    ahead = asked_alone(A, B, C)

    assert [ahead.begin(A, SOON_S), ahead.begin(C, SOON_S)] == [[B, C], []]
    ahead.end(A, {}, SOON_S)
    assert ahead.begin(C, SOON_S) == [A, B]


def test_those_that_were_asked_for_longest_ago_are_read_along_and_no_more_than_there_may_be() -> None:
    fleets = [fleet(str(number), 4) for number in range(MOST_PODS)]

    assert asked_alone(*fleets).begin(fleets[0], SOON_S) == fleets[1 : MOST_PODS // 4]


def test_a_delay_topic_with_many_pods_or_large_pages_is_read_alone() -> None:
    ahead = asked_alone(A, fleet("many", MOST_OF_FLEET + 1))
    ahead.note(B, [b"x" * (MOST_BYTES + 1)], 0.0)

    assert ahead.begin(A, SOON_S) == []


# -- from servers


@pytest.fixture
def all_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every look be soon, and pages count for long."""
    monkeypatch.setattr(pages_ahead, "AHEAD", 1.0)
    monkeypatch.setattr(pages_ahead, "KEPT", 100.0)


def status(pending: int, padding: int = 0) -> bytes:
    body = status_page().model_copy(update={"pending": pending}).to_json().encode() + b" " * padding
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def pending(page: RelayPage) -> int | None:
    return page.status.pending if page.status is not None else None


@pytest.mark.usefixtures("all_soon")
def test_a_look_whose_page_was_read_ahead_asks_nobody(pages: RelayPages) -> None:
    with answering([status(1)] * 2) as (first, _), ExitStack() as stack:
        second, _ = stack.enter_context(answering([status(2), status(3)]))
        read = [pages.read([pod(name, port)], 10) for name, port in (("a", first), ("b", second), ("a", first))]
        stack.close()
        read.append(pages.read([pod("b", second)], 10))

    assert [[pending(page) for page in each] for each in read] == [[1], [2], [1], [3]]


@pytest.mark.usefixtures("all_soon")
def test_a_pod_that_hangs_is_not_waited_for_by_those_it_is_read_along_with(pages: RelayPages) -> None:
    connections = count()

    def answer_once(connection: socket, ended: Event) -> None:
        if next(connections) == 0:
            connection.sendall(status(2))
        ended.wait(30)

    with answering([status(1)] * 2) as (first, _), hostile_server(answer_once) as second:
        read = [pages.read([pod(name, port)], 10) for name, port in (("a", first), ("b", second))]
        began_s = monotonic()
        read.append(pages.read([pod("a", first)], 30))
        took_s = monotonic() - began_s
        (late,) = pages.read([pod("b", second)], 0.3)

    assert [[pending(page) for page in each] for each in read] == [[1], [2], [1]]
    assert took_s < 10
    assert late == RelayPage("b", None, "did not answer within 0.3 s")


@pytest.mark.usefixtures("all_soon")
def test_a_large_page_is_asked_for_again_alone(pages: RelayPages) -> None:
    answers = [status(2), status(3, MOST_BYTES)]
    with answering([status(1)] * 2) as (first, _), answering(answers, [status(4)]) as (second, server):
        of = {"a": pod("a", first), "b": pod("b", second)}
        read = [pages.read([of[name]], 10) for name in ("a", "b", "a", "b")]

    assert ([[pending(page) for page in each] for each in read], server.count) == ([[1], [2], [1], [4]], 2)


@pytest.mark.usefixtures("all_soon")
def test_a_pod_that_answers_late_is_read_alone(pages: RelayPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_ahead, "LONGEST_S", 0.05)
    asked = count()

    def answer_late(connection: socket, ended: Event) -> None:
        ended.wait(2 * pages_ahead.LONGEST_S)
        next(asked)
        connection.sendall(status(2))
        if connection.recv(65_536):
            next(asked)

    with answering([status(1)] * 2) as (first, _), hostile_server(answer_late) as second:
        of = {"a": pod("a", first), "b": pod("b", second)}
        read = [pages.read([of[name]], 10) for name in ("a", "b", "a")]

    assert ([[pending(page) for page in each] for each in read], next(asked)) == ([[1], [2], [1]], 1)
