"""Addresses that the answers to writes name: where the end of a schedule is told."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from fastapi import Response

from delaytopic_gateway.documents import Accepted
from delaytopic_gateway.links import link
from delaytopic_gateway.service.gateway import Gateway, warning
from delaytopic_gateway.service.served_topics import ServedTopic
from delaytopic_process.errors import ProgramError


def ends_before(gateway: Gateway, served: ServedTopic, response: Response) -> Mapping[int, int]:
    """Return where the outcomes end before something is written; nothing, and a header, where that is not known.

    The write does not depend on it.
    """
    try:
        return gateway.outcome_ends(served)
    except ProgramError as error:
        said = "".join(each if each.isascii() and each.isprintable() and each != '"' else " " for each in str(error))
        response.headers["Warning"] = warning(f"how it ends is not told: {said}")
        return {}


def with_address(
    accepted: Accepted,
    namespace: str,
    name: str,
    schedule: tuple[int, int],
    ends: Mapping[int, int],
    response: Response,
) -> Accepted:
    """Return the answer to a write with the address that tells the end of a schedule, which is a `Location`, too."""
    partition, offset = schedule
    if partition not in ends:
        return accepted
    path = outcome_path(namespace, name, partition, offset, ends[partition])
    response.headers["Location"] = link(path)
    return accepted.model_copy(update={"outcomes_from": ends[partition], "outcome": f"/{path}"})


def outcome_path(namespace: str, name: str, partition: int, offset: int, start: int) -> str:
    """Return where the end of a schedule is told, below the gateway's own address."""
    base = f"v1/delaytopics/{quote(namespace, safe='')}/{quote(name, safe='')}/outcomes"
    return f"{base}/{partition}:{offset}?{urlencode({'from': start})}"
