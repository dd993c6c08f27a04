"""The questions that Kubernetes asks a gateway: whether it lives, and whether it can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from delaytopic_process.errors import ProgramError


class Readiness:
    """Asks whether requests can be answered; however many want to know, once at a time. For one event loop."""

    def __init__(self, ask: Callable[[], object]) -> None:
        """`ask` raises `ProgramError`s while they cannot be; it may take its time."""
        self._ask = ask
        self._asking: asyncio.Task[object] | None = None

    async def check(self) -> None:
        """Raise the `ProgramError` that tells why requests cannot be answered."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(run_in_threadpool(self._ask))
        await asyncio.shield(self._asking)


def probes_app(ask: Callable[[], object]) -> Starlette:
    """Return `/healthz` and `/readyz` alone, for a port where nobody else's requests are waited for."""
    readiness = Readiness(ask)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(request: Request) -> Response:
        try:
            await readiness.check()
        except ProgramError as error:
            return PlainTextResponse(f"{error}\n", 503)
        return PlainTextResponse("ok\n")

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz)])
