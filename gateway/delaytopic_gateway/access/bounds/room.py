"""Room for the requests of a gateway: bodies, turns, and answers that are still to be sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from delaytopic_gateway.access.bounds.bodies import Bodies, Refused, demand_simple
from delaytopic_gateway.access.bounds.shares import Turns, team_of
from delaytopic_gateway.access.rights import ANYBODY, CALLER, PROBES
from delaytopic_gateway.errors import BusyError
from delaytopic_process.errors import ProgramError

AT_ONCE: Final = 8
"""Requests that are worked on, or whose answers are being sent. Each takes a thread, and up to some ten MiB."""
OF_ONE_TEAM: Final = 3
AWAITED_AT_ONCE: Final = 6
"""Requests for outcomes: they wait for what relays do, and nobody else may have to wait for them."""
AWAITED_OF_ONE_TEAM: Final = 2
WAITING_OF_ONE_TEAM: Final = 16
_OF_OUTCOMES: Final = re.compile(r"/v1/delaytopics/[^/]+/[^/]+/outcomes(/|$)")
_FORM: Final = b"application/x-www-form-urlencoded"
_SMALL: Final = 64 << 10
"""The part of an answer that the server keeps without waiting for the reader."""


class Bounds:
    """An ASGI middleware behind the one that knows the caller: it lets in what there is room for."""

    def __init__(self, app: ASGIApp, refuse: Callable[[Scope, ProgramError | tuple[int, str]], ASGIApp]) -> None:
        """`refuse` makes the answer to what finds no room."""
        self._app = app
        self._refuse = refuse
        self._bodies = Bodies()
        self._turns = Turns(AT_ONCE, OF_ONE_TEAM, WAITING_OF_ONE_TEAM)
        self._waits = Turns(AWAITED_AT_ONCE, AWAITED_OF_ONE_TEAM, WAITING_OF_ONE_TEAM)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request when its turn comes, or refuse it."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        team, body = team_of(CALLER.get(ANYBODY).name), b""
        try:
            body = await self._bodies.read(team, receive)
            if _FORM not in dict(scope["headers"]).get(b"content-type", b""):
                demand_simple(body)
            turns = self._waits if _OF_OUTCOMES.match(scope["path"]) else self._turns
            async with turns.turn(team):
                await self._app(scope, _Replayed(body, receive), patient(send))
        except Refused as error:
            await self._refuse(scope, (error.status, str(error)))(scope, receive, send)
        except BusyError as error:
            await self._refuse(scope, error)(scope, receive, send)
        finally:
            self._bodies.forget(team, len(body))


class _Replayed:
    """Hands out a body that was read, and then what comes behind it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        message: Message = {"type": "http.request", "body": self._body, "more_body": False}
        self._body = None
        return message


def patient(send: Send) -> Send:
    """Return what sends answers and comes back when the reader has them, but for a little.

    The server waits for readers before each part alone: so an empty one follows the last.
    """

    async def send_and_wait(message: Message) -> None:
        if message["type"] == "http.response.body" and len(message.get("body", b"")) > _SMALL:
            await send({**message, "more_body": True})
            message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
        await send(message)

    return send_and_wait
