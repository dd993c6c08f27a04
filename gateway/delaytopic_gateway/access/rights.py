"""Rights to read and write, and the rules that every request has to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from enum import Enum
from ipaddress import ip_address
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from delaytopic_gateway.access.bounds.bodies import MOST_BYTES, Body
from delaytopic_gateway.access.bounds.shares import Turns
from delaytopic_gateway.errors import ForbiddenError
from delaytopic_process.errors import ProgramError

PROBES: Final = frozenset({"/healthz", "/readyz"})
"""Pages that say nothing of records."""
GROUP: Final = "delaytopic.dev"
ASKED_AT_ONCE: Final = 8
"""Questions who somebody is."""
ASKED_OF_ONE: Final = 2
"""Of one address: whoever makes tokens up does not let others wait."""
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
"""Of an answer before the end of the body: the server would read, and throw away, as much as somebody sends."""


class Right(Enum):
    """A right to a DelayTopic, as the verb and the resource that RBAC knows."""

    READ = ("get", "delaytopics", "")
    WRITE = ("update", "delaytopics", "records")

    @property
    def verb(self) -> str:
        """The verb."""
        return self.value[0]

    @property
    def resource(self) -> str:
        """The resource."""
        return self.value[1]

    @property
    def subresource(self) -> str:
        """Its part; empty for the whole."""
        return self.value[2]

    def missing(self, namespace: str) -> str:
        """Return the words on who has it not."""
        resource = "/".join(filter(None, (self.resource, self.subresource)))
        return f"this needs {self.verb} on {resource} of {GROUP} in namespace {namespace}"


class Caller(NamedTuple):
    """Somebody who asks, as a SubjectAccessReview names him."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANYBODY: Final = Caller("")
"""Whoever is at a machine where everybody may do everything."""
CALLER: ContextVar[Caller] = ContextVar("caller")
"""Of the request that is being answered, also in the thread that does it."""


class Access(Protocol):
    """The rules by which a gateway lets somebody in."""

    def admits(self, client: str, host: str) -> str | None:
        """Return why a request from this address to this host name is refused; None if it is not."""
        ...

    def open_pages(self) -> frozenset[str]:
        """Return the paths that anybody may read, by any name."""
        ...

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        """Return who asks, if it is known at once; None if it has to be asked for.

        Raises `UnauthenticatedError` and `ForbiddenError`.
        """
        ...

    def caller(self, client: str, headers: Headers) -> Caller:
        """Return who asks.

        Raises `UnauthenticatedError`, `ForbiddenError` and `ApiServerUnreachableError`. May take its time.
        """
        ...

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """Tell for DelayTopics, each by namespace and name, whether the caller has the right.

        Raises `ApiServerUnreachableError`.
        """
        ...


class LoopbackAccess:
    """Everybody on this machine may do everything, and nobody else anything."""

    def admits(self, client: str, host: str) -> str | None:
        """See `Access.admits`.

        A name that only leads to this machine is refused: pages of other sites could reach it by a name of theirs.
        """
        if not _is_loopback(client):
            return "this gateway answers to clients on its own machine"
        if not _is_loopback(host_name(host)):
            return "this gateway is asked as localhost or 127.0.0.1"
        return None

    def open_pages(self) -> frozenset[str]:
        """See `Access.open_pages`."""
        return frozenset()

    def remembered(self, client: str, headers: Headers) -> Caller | None:
        """See `Access.remembered`."""
        return ANYBODY

    def caller(self, client: str, headers: Headers) -> Caller:
        """See `Access.caller`."""
        return ANYBODY

    def allowed(self, caller: Caller, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """See `Access.allowed`."""
        return [True] * len(places)


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


class Rights:
    """The rights of the caller of the request that is being answered."""

    def __init__(self, access: Access) -> None:
        """Asks `access` each time."""
        self._access = access

    def allowed(self, right: Right, places: Sequence[tuple[str, str]]) -> list[bool]:
        """See `Access.allowed`."""
        return self._access.allowed(CALLER.get(), right, places)


def demand(writable: bool, namespace: str) -> None:
    """Raise `ForbiddenError` for who may not write."""
    if not writable:
        raise ForbiddenError(Right.WRITE.missing(namespace))


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


def host_name(host: str) -> str:
    """Return the name in a Host header, without the port; empty for none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
