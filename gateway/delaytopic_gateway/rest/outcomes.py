"""The REST of outcomes, beside that of pending records: how a schedule ended."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response

from delaytopic_api.relay import Outcome
from delaytopic_gateway.client.time_text import duration
from delaytopic_gateway.documents import OutcomeAwaited, OutcomePage, outcome_page
from delaytopic_gateway.rest.addresses import outcome_path
from delaytopic_gateway.rest.delay_topics import ERRORS, Name, Namespace, Partition
from delaytopic_gateway.service.gateway import Gateway, hidden_headers
from delaytopic_process.errors import InputError

LONGEST_WAIT_S: Final = 20.0
"""The longest wait, less than clients wait for an answer."""
PlaceInSource = Annotated[
    str,
    Path(
        pattern="^[0-9]{1,9}:[0-9]{1,18}$",
        description="PARTITION:OFFSET of the schedule in the source.",
        examples=["3:1017"],
    ),
]
Wait = Annotated[str, Query(max_length=20, description="How long to wait for it, 20 s at most.", examples=["10s"])]
From = Annotated[int, Query(alias="from", ge=0, lt=1 << 63, description="The offset from which on it lies.")]
IdAsked = Annotated[str, Query(min_length=1, max_length=256, description="The id.")]


def outcomes_rest(gateway: Gateway) -> APIRouter:
    """Return the routes below `outcomes` of each DelayTopic."""
    router = APIRouter(prefix="/v1/delaytopics/{namespace}/{name}/outcomes", tags=["outcomes"], responses=ERRORS)

    @router.get("", summary="List how schedules of an id ended, the last one first")
    def list_outcomes(
        namespace: Namespace, name: Name, response: Response, id: IdAsked, partition: Partition = None
    ) -> OutcomePage:
        served = gateway.served(namespace, name)
        response.headers.update(hidden_headers(served))
        return outcome_page(gateway.endings(served, id, partition))

    @router.get(
        "/{place}",
        summary="Tell how a schedule ended, or that it has not yet",
        responses={202: {"model": OutcomeAwaited, "description": "It has not ended, as far as was read."}},
    )
    def read_outcome(
        namespace: Namespace, name: Name, place: PlaceInSource, response: Response, start: From = 0, wait: Wait = "0s"
    ) -> Outcome | OutcomeAwaited:
        served = gateway.served(namespace, name)
        response.headers.update(hidden_headers(served))
        partition, offset = map(int, place.split(":"))
        found = gateway.outcome(served, partition, offset, start, _wait_s(wait))
        if found.outcome is not None:
            return found.outcome
        response.status_code = 202
        address = f"/{outcome_path(namespace, name, partition, offset, found.next)}"
        return OutcomeAwaited(next=address, expired=found.expired)

    return router


def _wait_s(text: str) -> float:
    wait_s = duration(text).ms / 1_000
    if wait_s > LONGEST_WAIT_S:
        raise InputError(f"wait: {LONGEST_WAIT_S:.0f}s at most; ask again for longer")
    return wait_s
