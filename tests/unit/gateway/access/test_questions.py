"""Questions who somebody is: few at a time, few of an address, and none about a token that was just refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Scope
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.relay.process import wait_for

from delaytopic_gateway.access.guard import ASKED_AT_ONCE, ASKED_OF_ONE, Guard
from delaytopic_gateway.cluster.access import MOST_TOKENS, REFUSED_MS, ClusterAccess
from delaytopic_gateway.errors import UnauthenticatedError
from delaytopic_process.errors import ProgramError

Document = dict[str, Any]


class Server:
    """An API server that knows one token and allows everything, when the test lets it answer."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.reviewed: list[str] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def create(self, path: str, document: Document) -> Document:
        if "token" not in document["spec"]:
            return {"status": {"allowed": True}}
        self.reviewed.append(document["spec"]["token"])
        assert self.go_on.wait(60)
        if document["spec"]["token"] != "valid":
            return {"status": {"authenticated": False}}
        return {"status": {"authenticated": True, "user": {"username": "jane"}}}

    def access(self) -> ClusterAccess:
        return ClusterAccess(self, now_ms=lambda: self.now_ms)  # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.go_on.set()


def bearer(token: str) -> Headers:
    return Headers({"authorization": f"Bearer {token}"})


def refused(access: ClusterAccess, token: str) -> bool:
    try:
        access.caller("10.0.0.1", bearer(token))
    except UnauthenticatedError:
        return True
    return False


def test_a_refused_token_is_asked_about_again_when_some_seconds_have_passed(server: Server) -> None:
    access = server.access()

    found = [refused(access, "made up") for _ in range(3)]
    server.now_ms = REFUSED_MS
    again = refused(access, "made up")

    assert (found, again, server.reviewed) == ([True] * 3, True, ["made up"] * 2)


def test_made_up_tokens_push_no_valid_one_out(server: Server) -> None:
    access = server.access()
    access.caller("10.0.0.1", bearer("valid"))
    for number in range(MOST_TOKENS + 1):
        refused(access, f"made up {number}")

    assert access.remembered("10.0.0.1", bearer("valid")) is not None
    assert server.reviewed.count("valid") == 1


def test_who_makes_tokens_up_holds_nobody_up_who_is_known(server: Server) -> None:
    scene = Scene({REMINDERS: []})
    with gateway_over(scene, server.access()) as served, ThreadPoolExecutor(30) as threads:
        assert served.get("/v1/delaytopics", Authorization="Bearer valid").status == 200
        server.go_on.clear()
        made_up = [
            threads.submit(served.get, "/v1/delaytopics", Authorization=f"Bearer made up {number}")
            for number in range(30)
        ]
        wait_for(lambda: len(server.reviewed) == 1 + ASKED_OF_ONE, lambda: f"{server.reviewed}")

        known = served.get("/v1/delaytopics", Authorization="Bearer valid").status
        asked = len(server.reviewed)
        server.go_on.set()

    assert (known, asked) == (200, 1 + ASKED_OF_ONE)
    assert {answer.result().status for answer in made_up} == {401}


def test_of_many_addresses_a_few_are_asked_about_at_once(server: Server) -> None:
    server.go_on.clear()
    statuses: list[int] = []

    def refuse(scope: Scope, why: ProgramError | tuple[int, str]) -> Response:
        return Response(status_code=401)

    guard = Guard(Response(), server.access(), lambda line: None, refuse)

    async def ask(number: int) -> None:
        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        headers = [(b"authorization", b"Bearer made up %d" % number)]
        client = (f"10.0.0.{number}", 1)
        await guard({"type": "http", "method": "GET", "path": "/", "headers": headers, "client": client}, receive, send)

    async def story() -> int:
        tasks = [asyncio.create_task(ask(number)) for number in range(3 * ASKED_AT_ONCE)]
        while len(server.reviewed) < ASKED_AT_ONCE:
            await asyncio.sleep(0)
        asked = len(server.reviewed)
        server.go_on.set()
        await asyncio.gather(*tasks)
        return asked

    assert asyncio.run(story()) == ASKED_AT_ONCE
    assert statuses == [401] * 3 * ASKED_AT_ONCE
