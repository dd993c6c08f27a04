"""Who may read and write, and what every request has to keep to."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 4 << 20
"""Of a request's body; a record is smaller."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Access(Protocol):
    """The rules by which a gateway lets somebody in."""

    def admits(self, client: str, host: str) -> str | None:
        """Return why a request from this address to this host name is refused; None if it is not."""
        ...


class LoopbackAccess:
    """Everybody on this machine may do everything, and nobody else anything."""

    def admits(self, client: str, host: str) -> str | None:
        """See `Access.admits`.

        A name that only leads to this machine is refused: pages of other sites could reach it by a name of theirs.
        """
        if not _is_loopback(client):
            return "this gateway answers to clients on its own machine"
        if not _is_loopback(_host_name(host)):
            return "this gateway is asked as localhost or 127.0.0.1"
        return None


class AuditLine(NamedTuple):
    """A request that writes, and how it was answered."""

    client: str
    method: str
    path: str
    status: int


Audit = Callable[[AuditLine], None]


class Guard:
    """An ASGI middleware: who comes in, from which page, and with how much; what writes is noted."""

    def __init__(self, app: ASGIApp, access: Access, audit: Audit) -> None:
        """`access` decides who comes in; `audit` gets a line for each request that writes."""
        self._app = app
        self._access = access
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        app = self._app if refusal is None else JSONResponse({"message": refusal[1]}, refusal[0])

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
                if scope["method"] not in _SAFE:
                    line = AuditLine(_client(scope), scope["method"], scope["path"], message["status"])
                    self._audit(line)
            await send(message)

        await app(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        why = self._access.admits(_client(scope), host)
        if why is not None:
            return 403, why
        if scope["method"] in _SAFE:
            return None
        if not _is_of_same_origin(headers, host):
            return 403, "a page of another site may not write here"
        length = headers.get("content-length", "")
        if not length.isdecimal() and "transfer-encoding" in headers:
            return 411, "say how long the body is (Content-Length)"
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


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
