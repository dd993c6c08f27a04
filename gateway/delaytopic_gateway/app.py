"""The application: documents, pages, and one answer for each kind of error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from delaytopic_gateway.access.bounds.room import Bounds
from delaytopic_gateway.access.guard import Audit, Guard
from delaytopic_gateway.access.rights import Access, Rights
from delaytopic_gateway.console.pages import Console, console_router
from delaytopic_gateway.dead_letters.pages import DeadLetterPages, dead_letters_router
from delaytopic_gateway.dead_letters.rest import dead_letters_rest
from delaytopic_gateway.dead_letters.service import Letters
from delaytopic_gateway.documents import ErrorDocument
from delaytopic_gateway.errors import (
    ApiServerUnreachableError,
    BusyError,
    ConflictError,
    ForbiddenError,
    KafkaUnreachableError,
    RecordMissingError,
    RelayUnreachableError,
    TopicError,
    UnauthenticatedError,
)
from delaytopic_gateway.jobs import Jobs
from delaytopic_gateway.jobs.pages import JobPages, job_pages_router
from delaytopic_gateway.jobs.rest import jobs_rest
from delaytopic_gateway.links import Links
from delaytopic_gateway.probes import Readiness
from delaytopic_gateway.rest.clock import clock_rest
from delaytopic_gateway.rest.delay_topics import rest
from delaytopic_gateway.rest.outcomes import outcomes_rest
from delaytopic_gateway.rest.schedulers import Schedulers, scheduler_router
from delaytopic_gateway.service.clock import MovableClock
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_process.errors import InputError, ProgramError

_STATUS: Final = {
    InputError: 400,
    UnauthenticatedError: 401,
    ForbiddenError: 403,
    RecordMissingError: 404,
    ConflictError: 409,
    TopicError: 502,
    KafkaUnreachableError: 503,
    RelayUnreachableError: 503,
    ApiServerUnreachableError: 503,
    BusyError: 503,
}


def gateway_app(
    gateway: Gateway, access: Access, audit: Audit, jobs: Jobs | None = None, clock: MovableClock | None = None
) -> FastAPI:
    """Return the ASGI application; `audit` gets a line for each request that writes.

    `access` decides who comes in, and what he may do. `jobs` are those of the same gateway, where it keeps any; `clock`
    is the one by which it tells the time, where tests move one.
    """
    gateway = replace(gateway, rights=Rights(access))
    # Its pages of documentation load scripts from elsewhere.
    app = FastAPI(
        title="delaytopic gateway",
        version=version("delaytopic"),
        description="Pending records of DelayTopics: list, schedule, cancel and move them; how they ended; and "
        "dead letters.",
        docs_url=None,
        redoc_url=None,
    )
    console = Console(gateway, keeps_jobs=jobs is not None)
    letters = Letters(gateway)
    app.include_router(rest(gateway))
    app.include_router(outcomes_rest(gateway))
    app.include_router(dead_letters_rest(letters))
    app.include_router(jobs_rest(gateway, jobs))
    app.include_router(clock_rest(clock))
    app.include_router(job_pages_router(JobPages(console, jobs), gateway))
    app.include_router(console_router(console, gateway))
    app.include_router(dead_letters_router(DeadLetterPages(console, letters), letters))
    app.include_router(scheduler_router(Schedulers(gateway)))
    for kind in (ProgramError, RequestValidationError, ValidationError, HTTPException):
        app.add_exception_handler(kind, partial(_failed, console))
    refuse = partial(_refused, console)
    app.add_middleware(Bounds, refuse=refuse)
    app.add_middleware(Guard, access=access, audit=audit, refuse=refuse)
    app.add_middleware(Links)
    readiness = Readiness(gateway.topics.all)

    # On the loop: they take no thread, of which others may have all.
    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        await readiness.check()
        return PlainTextResponse("ok\n")

    return app


def _refused(console: Console, scope: Scope, refusal: ProgramError | tuple[int, str]) -> Response:
    status, message = refusal if isinstance(refusal, tuple) else _told(refusal)
    return _answered(console, Request(scope), status, message)


def _failed(console: Console, request: Request, error: Exception) -> Response:
    status, message = _told(error)
    return _answered(console, request, status, message, {"Allow": _allowed(request)} if status == 405 else None)


def _allowed(request: Request) -> str:
    """Return the methods of an address: each has a route of its own, and 405 names those of the first alone."""
    routes, scope = request.app.routes, request.scope
    found = [
        method
        for method in ("DELETE", "GET", "PATCH", "POST")
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in routes)
    ]
    return ", ".join(found)


def _answered(
    console: Console, request: Request, status: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    if status == 503:
        headers = {"Retry-After": "1"}
    if request.url.path.startswith("/v1") or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse(ErrorDocument(message=message).to_document(), status, headers)
    page = console.page("error.html", status, status_text=status, title=_title(status), message=message)
    page.headers.update(headers or {})
    return page


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _field(place: Sequence[int | str]) -> str:
    """Return the name of a field, without the part of the request that it is in."""
    names = [str(name) for name in place]
    return ".".join(names[1:] if len(names) > 1 and names[0] in ("body", "query", "path") else names)


def _told(error: Exception) -> tuple[int, str]:
    if isinstance(error, RequestValidationError | ValidationError):
        problems = [f"{_field(each['loc'])}: {each['msg']}" for each in error.errors()]
        return 400, "; ".join(problems[:5])
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500), str(error)
