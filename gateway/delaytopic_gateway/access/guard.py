"""The rules that every request to a gateway has to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from delaytopic_gateway.access.bounds.bodies import MOST_BYTES, Body
from delaytopic_gateway.access.bounds.shares import Turns
from delaytopic_gateway.access.rights import ANYBODY, CALLER, Access, Caller
from delaytopic_process.errors import ProgramError

ASKED_AT_ONCE: Final = 8
"""Questions who somebody is."""
ASKED_OF_ONE: Final = 2
"""The most requests of one address that are asked about: a caller who makes tokens up does not let others wait."""
WAITING_OF_ONE: Final = 32
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, browsers send forms of these very pages with the origin null, which is refused.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_LAST: Final = {"Connection": "close"}
"""The header of an answer before the end of the body: the server would read, and throw away, as much as somebody sends.
"""


class AuditLine(NamedTuple):
    """A request that writes, and how it was answered."""

    client: str
    method: str
    path: str
    status: int
    user: str = ""
    """Empty where nobody is asked for a name, or none was accepted."""


Audit = Callable[[AuditLine], None]
Refuse = Callable[[Scope, ProgramError | tuple[int, str]], ASGIApp]
"""Makes the answer to a request that is not let in: for an error, or with a status and a text."""


class Guard:
    """An ASGI middleware: who comes in, from which page, and with how much; what writes is noted."""

    def __init__(self, app: ASGIApp, access: Access, audit: Audit, refuse: Refuse) -> None:
        """`access` decides who comes in; `audit` gets a line for each request that writes."""
        self._app = app
        self._access = access
        self._audit = audit
        self._refuse = refuse
        self._questions = Turns(ASKED_AT_ONCE, ASKED_OF_ONE, WAITING_OF_ONE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        caller, app = ANYBODY, self._app
        refusal: ProgramError | tuple[int, str] | None = self._refusal(scope, headers)
        if refusal is None and not self._is_open(scope):
            try:
                caller = await self._caller(_client(scope), headers)
            except ProgramError as error:
                refusal = error
        if refusal is not None:
            app = self._refuse(scope, refusal)
        body = Body(headers, receive)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS if body.ended else _HEADERS | _LAST)
                if scope["method"] not in _SAFE:
                    status = message["status"]
                    self._audit(AuditLine(_client(scope), scope["method"], scope["path"], status, caller.name))
            await send(message)

        remembered = CALLER.set(caller)
        try:
            await app(scope, body.receive, send_with_headers)
        finally:
            CALLER.reset(remembered)

    async def _caller(self, client: str, headers: Headers) -> Caller:
        known = self._access.remembered(client, headers)
        if known is not None:
            return known
        async with self._questions.turn(client):
            return await run_in_threadpool(self._access.caller, client, headers)

    def _is_open(self, scope: Scope) -> bool:
        return scope["method"] in _SAFE and scope["path"] in self._access.open_pages()

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if self._is_open(scope):
            return None
        host = headers.get("host", "")
        why = self._access.admits(_client(scope), host)
        if why is not None:
            return 403, why
        if scope["method"] in _SAFE:
            return None
        if not _is_of_same_origin(headers, host):
            return 403, "a page of another site may not write here"
        # A length beside it would be another one than that of the body.
        if "transfer-encoding" in headers:
            return 411, "say how long the body is (Content-Length, and no Transfer-Encoding)"
        length = headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 12 or int(length) > MOST_BYTES):
            return 413, f"a body may have {MOST_BYTES} bytes"
        return None


def _client(scope: Scope) -> str:
    return str((scope.get("client") or ("", 0))[0])


def _is_of_same_origin(headers: Headers, host: str) -> bool:
    """Tell whether a request comes from a page of this gateway, or from no page at all.

    Browsers name the origin with every request that writes.
    """
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    return urlsplit(origin).netloc == host
