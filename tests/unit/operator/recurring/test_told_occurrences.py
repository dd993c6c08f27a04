"""The last delivery of what recurs, asked of pages that relays serve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from typing import Any

import pytest

from delaytopic_api.relay import LastOccurrence
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.recurring.told_occurrences import ToldOccurrences
from delaytopic_process.pages import JSON, Answer, Pages, Request
from delaytopic_relay.core.commands import OCCURRENCE, Schedule
from delaytopic_relay.telemetry.last_occurrences import LastOccurrences

KEY = Key("shop", "report")
NAME = "0b54b5c2-5d5b-4ae8-a2a3-7c6dbb3ab1c6"
MINUTE_MS = 60_000


class Relay:
    """The page of a relay, and how often it was asked for."""

    def __init__(self, pod: str) -> None:
        self.name = pod
        self.questions = 0
        self.answers: bytes | None = None
        """The body of all answers, in place of what is true."""
        self._occurrences = LastOccurrences()
        self._port = 0

    @contextmanager
    def serving(self) -> Iterator[None]:
        pages = Pages("relay", "127.0.0.1", 0, {"/occurrence": self._answer})
        pages.start()
        self._port = pages.port
        try:
            yield
        finally:
            pages.stop()

    def _answer(self, request: Request) -> Answer:
        self.questions += 1
        return Answer(HTTPStatus.OK, JSON, self.answers) if self.answers else self._occurrences.page(request)

    def delivers(self, number: int) -> LastOccurrence:
        """Deliver the occurrence of that minute, and return what is told of it."""
        slot_ms = number * MINUTE_MS
        headers: list[tuple[str, bytes | None]] = [("delay-occurrence", b"%d:%d" % (number, slot_ms))]
        schedule = Schedule(number, slot_ms, None, None, id=NAME.encode(), headers=headers, control=OCCURRENCE)
        self._occurrences.sent([schedule], slot_ms + 20)
        self._occurrences.committed()
        return LastOccurrence(number=number, slot_ms=slot_ms, sent_ms=slot_ms + 20)

    @property
    def pod(self) -> dict[str, Any]:
        container = {"name": "relay", "ports": [{"name": "http", "containerPort": self._port}]}
        status = {"podIP": "127.0.0.1"}
        return {"metadata": {"name": self.name}, "spec": {"containers": [container]}, "status": status}


@pytest.fixture
def relays() -> Iterator[tuple[Relay, Relay]]:
    with ExitStack() as stack:
        made = Relay("relay-a"), Relay("relay-b")
        for relay in made:
            stack.enter_context(relay.serving())
        yield made


def asked(told: ToldOccurrences, relays: tuple[Relay, Relay], known: int) -> LastOccurrence | None:
    """Ask when the status knows of the occurrence of that minute."""
    return told.latest(KEY, NAME, [relay.pod for relay in relays], known * MINUTE_MS)


def test_nothing_is_told_before_any_relay_has_delivered(relays: tuple[Relay, Relay], pages: RelayPages) -> None:
    assert asked(ToldOccurrences(pages), relays, 0) is None


def test_the_relay_that_has_told_before_is_asked_alone_while_it_delivers(
    relays: tuple[Relay, Relay], pages: RelayPages
) -> None:
    told, (one, other) = ToldOccurrences(pages), relays
    first = one.delivers(1)
    found = [asked(told, relays, 0)]
    second = one.delivers(2)
    found.append(asked(told, relays, 1))

    assert found == [first, second]
    assert (one.questions, other.questions) == (2, 1)


def test_a_relay_that_has_taken_the_partition_over_is_heard(relays: tuple[Relay, Relay], pages: RelayPages) -> None:
    told, (one, other) = ToldOccurrences(pages), relays
    one.delivers(1)
    asked(told, relays, 0)
    second = other.delivers(2)

    assert asked(told, relays, 1) == second


def test_a_pod_that_answers_something_else_is_passed_over(relays: tuple[Relay, Relay], pages: RelayPages) -> None:
    one, other = relays
    one.answers = b"[1]"
    found = other.delivers(1)

    assert asked(ToldOccurrences(pages), relays, 0) == found
