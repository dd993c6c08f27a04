"""The REST of a clock that tests move, described by OpenAPI at /openapi.json."""

from __future__ import annotations

from fastapi import APIRouter

from delaytopic_gateway.documents import Advance, ClockDocument
from delaytopic_gateway.rest.delay_topics import ERRORS
from delaytopic_gateway.service.clock import MovableClock, Reading, demand_clock


def clock_rest(clock: MovableClock | None) -> APIRouter:
    """Return the routes of `/v1/clock`; None for a gateway whose clock is the machine's."""
    router = APIRouter(prefix="/v1/clock", tags=["clock"], responses={each: ERRORS[each] for each in (400, 409, 503)})

    @router.get("", summary="Read the clock of `delaytopic local --clock manual`")
    def read() -> ClockDocument:
        return _document(demand_clock(clock).read())

    @router.post("", summary="Move it on; the answer comes when all relays have followed")
    def advance(wanted: Advance) -> ClockDocument:
        return _document(demand_clock(clock).advance(wanted.duration_ms))

    return router


def _document(reading: Reading) -> ClockDocument:
    return ClockDocument(now_ms=reading.now_ms, shift_ms=reading.shift_ms)
