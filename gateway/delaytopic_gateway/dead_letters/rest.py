"""The REST of dead letters, beside that of pending records."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from delaytopic_gateway.access.rights import Right
from delaytopic_gateway.client.dead_letters import Place
from delaytopic_gateway.dead_letters.documents import (
    DeadLetterDocument,
    DeadLetterPage,
    DeadLetterSelection,
    Resend,
    ResendResult,
)
from delaytopic_gateway.dead_letters.service import Letters
from delaytopic_gateway.kafka.window import parse_cursor
from delaytopic_gateway.rest.delay_topics import ERRORS, Name, Namespace
from delaytopic_gateway.service.gateway import hidden_headers

PlaceParameter = Annotated[str, Path(pattern="^[0-9]{1,9}:[0-9]{1,18}$", examples=["0:17"])]


def dead_letters_rest(letters: Letters) -> APIRouter:
    """Return the routes below `dead-letters` of each DelayTopic."""
    router = APIRouter(
        prefix="/v1/delaytopics/{namespace}/{name}/dead-letters", tags=["dead letters"], responses=ERRORS
    )
    gateway = letters.gateway

    @router.get("", summary="List dead letters, the newest first")
    def list_dead_letters(
        namespace: Namespace, name: Name, selection: Annotated[DeadLetterSelection, Query()]
    ) -> DeadLetterPage:
        before = parse_cursor(selection.after) if selection.after is not None else None
        return letters.page(gateway.served(namespace, name), {*selection.reason}, before, selection.limit)

    @router.get("/{place}", summary="Read a dead letter, with its content")
    def read_dead_letter(
        namespace: Namespace, name: Name, place: PlaceParameter, response: Response
    ) -> DeadLetterDocument:
        served = gateway.served(namespace, name)
        response.headers.update(hidden_headers(served))
        return letters.at(served, Place.parse(place))

    @router.post("/resend", status_code=202, summary="Send dead letters to the source topic again, each once")
    def send_dead_letters(namespace: Namespace, name: Name, resend: Resend) -> ResendResult:
        return letters.send(gateway.served(namespace, name, Right.WRITE), resend)

    return router
