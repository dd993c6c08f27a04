"""Requests that take long, and clients that neither ask nor read: others are answered beside them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

import pytest
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope
from tests.support.gateway.gateway import REMINDERS, Answer, OutcomesOfAScene, Scene, gateway_over
from tests.support.gateway.rights import Everybody
from tests.support.relay.process import wait_for

from delaytopic_api.relay import RecordPlace
from delaytopic_gateway.access.bounds import connections
from delaytopic_gateway.access.bounds.room import (
    AT_ONCE,
    AWAITED_AT_ONCE,
    AWAITED_OF_ONE_TEAM,
    OF_ONE_TEAM,
    WAITING_OF_ONE_TEAM,
    patient,
)
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.errors import ApiServerUnreachableError
from delaytopic_gateway.kafka.endings import Search
from delaytopic_gateway.probes import probes_app
from delaytopic_gateway.server import serving

BASE = "/v1/delaytopics/shop/reminders"
LARGE = b"x" * (32 << 20)


class SlowScene(Scene):
    """Relays that answer when the test says so."""

    def __init__(self) -> None:
        super().__init__({REMINDERS: []})
        self.go_on = threading.Event()
        self.asked = threading.Semaphore(0)

    def ask(self, urls: Sequence[str], parameters: Mapping[str, int | str]) -> list[RelayAnswer]:
        self.asked.release()
        assert self.go_on.wait(60)
        return super().ask(urls, parameters)


@contextmanager
def asked_by(scene: SlowScene, users: Sequence[str]) -> Iterator[list[Future[Answer]]]:
    """Ask for a DelayTopic by each of these, and let the relays answer at the end."""
    with ThreadPoolExecutor(len(users)) as threads:
        yield [threads.submit(scene.get, BASE, User=user) for user in users]
        scene.go_on.set()


@pytest.fixture
def scene() -> Iterator[SlowScene]:
    slow = SlowScene()
    with gateway_over(slow, Everybody()):
        yield slow


def test_health_is_told_while_every_thread_waits(scene: SlowScene) -> None:
    # Starlette's threads are 40.
    with asked_by(scene, [f"user {number}" for number in range(60)]):
        for _ in range(AT_ONCE):
            assert scene.asked.acquire(timeout=10)

        assert [scene.get(path).status for path in ("/healthz", "/readyz")] == [200, 200]


def test_one_team_waits_for_itself_and_others_are_answered(scene: SlowScene) -> None:
    # As many as Starlette has threads.
    team = [f"system:serviceaccount:hostile:{number}" for number in range(40)]
    with asked_by(scene, team) as first:
        for _ in range(OF_ONE_TEAM):
            assert scene.asked.acquire(timeout=10)
        with asked_by(scene, ["jane"]) as others:
            assert scene.asked.acquire(timeout=10)
        assert [answer.result(10).status for answer in others] == [200]
    served = OF_ONE_TEAM + WAITING_OF_ONE_TEAM
    assert sorted(answer.result(10).status for answer in first) == [200] * served + [503] * (len(team) - served)


def test_a_caller_with_too_many_requests_is_told_to_come_again(scene: SlowScene) -> None:
    users = ["jane"] * (OF_ONE_TEAM + WAITING_OF_ONE_TEAM + 1)
    with asked_by(scene, users) as answers:
        wait_for(lambda: any(answer.done() for answer in answers), lambda: "nobody was refused")

    refused = [answer.result() for answer in answers if answer.result().status != 200]
    assert [(each.status, each.headers["retry-after"]) for each in refused] == [(503, "1")]


def test_probes_are_answered_while_the_other_loop_stands_still() -> None:
    came, go_on = threading.Event(), threading.Event()

    async def stuck(scope: AsgiScope, receive: Receive, send: Send) -> None:
        came.set()
        go_on.wait(60)
        await Response()(scope, receive, send)

    probed, asked = Scene(), Scene()
    with serving(stuck) as asked.url, serving(probes_app(lambda: None)) as probed.url, ThreadPoolExecutor(1) as thread:
        thread.submit(asked.get, "/")
        assert came.wait(10)

        assert [probed.get(path)[:2] for path in ("/healthz", "/readyz")] == [(200, "ok\n"), (200, "ok\n")]
        assert probed.get("/").status == 404
        go_on.set()


def test_who_cannot_answer_is_not_ready_and_lives() -> None:
    def fails() -> None:
        raise ApiServerUnreachableError("the API server does not answer")

    probed = Scene()
    with serving(probes_app(fails)) as probed.url:
        assert [probed.get(path)[:2] for path in ("/healthz", "/readyz")] == [
            (200, "ok\n"),
            (503, "the API server does not answer\n"),
        ]


def connected(scene: Scene) -> closing[socket.socket]:
    host, _, port = scene.url.removeprefix("http://").partition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.settimeout(20)
    client.connect((host, int(port)))
    return closing(client)


def received(client: socket.socket) -> Iterator[bytes]:
    """Yield all that comes until the connection ends."""
    with suppress(ConnectionResetError):
        while part := client.recv(65_536):
            yield part


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: a",
    ],
    ids=["nothing", "half a head", "half a second head"],
)
def test_a_client_that_does_not_ask_is_hung_up(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    scene = Scene()
    with serving(Response("ok")) as scene.url, connected(scene) as client:
        client.sendall(sent)

        assert sum(map(len, received(client))) < 1_000


def test_a_client_that_does_not_read_its_answer_is_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_S", 0.1)
    done = threading.Event()

    async def large(scope: AsgiScope, receive: Receive, send: Send) -> None:
        await Response(LARGE)(scope, receive, patient(send))
        done.set()

    scene = Scene()
    with serving(large) as scene.url, connected(scene) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert done.wait(20)

        assert sum(map(len, received(client))) < len(LARGE)


class AwaitedOutcomes(OutcomesOfAScene):
    """Outcomes that come when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.asked = threading.Semaphore(0)

    def first(self, topic: str, schedule: RecordPlace, start: int, wait_s: float) -> Search:
        self.asked.release()
        assert self.go_on.wait(60)
        return super().first(topic, schedule, start, wait_s)


def test_callers_that_await_outcomes_hold_nobody_else_up() -> None:
    outcomes = AwaitedOutcomes()
    scene = Scene({replace(REMINDERS, outcomes="outcomes"): []}, outcomes=outcomes)
    users = [f"user-{number}" for number in range(AWAITED_AT_ONCE)]
    with gateway_over(scene, Everybody()), ThreadPoolExecutor(AWAITED_AT_ONCE + 1) as threads:
        awaited = [threads.submit(scene.get, f"{BASE}/outcomes/0:1?wait=20s", User=user) for user in users]
        assert all(outcomes.asked.acquire(timeout=30) for _ in users)
        others = [scene.get(BASE, User=user).status for user in users]
        outcomes.go_on.set()

        assert others == [200] * AWAITED_AT_ONCE
        assert [each.result(30).status for each in awaited] == [202] * AWAITED_AT_ONCE


def test_one_team_awaits_few_outcomes_at_once() -> None:
    outcomes = AwaitedOutcomes()
    scene = Scene({replace(REMINDERS, outcomes="outcomes"): []}, outcomes=outcomes)
    asked = AWAITED_OF_ONE_TEAM + 1
    with gateway_over(scene, Everybody()), ThreadPoolExecutor(asked + 1) as threads:
        awaited = [threads.submit(scene.get, f"{BASE}/outcomes/0:1?wait=20s", User="a") for _ in range(asked)]
        assert all(outcomes.asked.acquire(timeout=30) for _ in range(AWAITED_OF_ONE_TEAM))
        other = threads.submit(scene.get, f"{BASE}/outcomes/0:2", User="b")
        is_let_in = outcomes.asked.acquire(timeout=30)
        outcomes.go_on.set()

        # Two of the first team, and the other one: the third came later.
        assert (is_let_in, other.result(30).status, [each.result(30).status for each in awaited]) == (
            True,
            202,
            [202] * asked,
        )
