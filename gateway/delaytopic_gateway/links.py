"""Addresses of this gateway as the page names them that is being answered: they hold behind any path of a proxy."""

from __future__ import annotations

from contextvars import ContextVar

from starlette.types import ASGIApp, Receive, Scope, Send

_UP: ContextVar[str] = ContextVar("up", default="./")


class Links:
    """An ASGI middleware that notes where a request's address lies below the gateway's own."""

    def __init__(self, app: ASGIApp) -> None:
        """`app` answers."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        noted = _UP.set("../" * (scope["raw_path"].count(b"/") - 1) or "./") if scope["type"] == "http" else None
        try:
            await self._app(scope, receive, send)
        finally:
            if noted is not None:
                _UP.reset(noted)


def link(path: str) -> str:
    """Return the address of a path of this gateway, which has no slash in front, relative to the request's."""
    return _UP.get() + path
