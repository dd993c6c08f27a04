"""Edge: reads the pages of relays and audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http.client import HTTPException
from time import monotonic
from typing import Any, Final

from pydantic import ValidationError

from delaytopic_api import RelayStatus
from delaytopic_api.relay import FOR_OPERATOR
from delaytopic_operator.observe import pages_ahead
from delaytopic_operator.observe.exchanges import Answer, Exchanges, Limits, Peer, Question
from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.pages_ahead import Answers, Fleet, PagesAhead

DEFAULT_PORT: Final = 8080
STATUS: Final = f"/status?{FOR_OPERATOR}"
MOST_BYTES: Final = 8 << 20
"""The bound of all pages of one DelayTopic, whose relays divide its partitions, 10,000 at most: one of them takes 220
bytes, and 620 with former rules and what keeps it from going on."""
MOST_VALUES: Final = 240_000
"""The most values in all these pages: each is an object in memory, however short it is written. A partition has 8 to
20."""
MOST_AT_ONCE: Final = 8
"""The pages of one DelayTopic that are asked for at once: one with thousands of pods does not have thousands of
connections."""

Document = dict[str, Any]


class RelayPages:
    """Thread-safe."""

    def __init__(self, poll_s: float) -> None:
        """The page of each relay is read about every `poll_s`."""
        self._exchanges = Exchanges()
        self._ahead = PagesAhead(poll_s)

    def read(self, pods: Sequence[Document], deadline_s: float) -> list[RelayPage]:
        """Read the page of each pod, in their order; never raises, and answers within the deadline.

        A page may have been read half a second ago, along with another DelayTopic's.
        """
        asked = _peers(pods)
        answers = dict(zip(asked, self._ask(tuple(asked.values()), deadline_s), strict=True)) if asked else {}
        return [
            _page(asked[place], answers[place], deadline_s)
            if place in asked
            else RelayPage(pod["metadata"]["name"], None, "has no address yet")
            for place, pod in enumerate(pods)
        ]

    def fetch(self, pod: Mapping[str, Any], path: str, deadline_s: float) -> bytes | None:
        """Return another page of one pod; None where it does not come within the deadline."""
        return next(iter(self.fetch_each([pod], path, deadline_s).values()), None)

    def fetch_each(self, pods: Sequence[Mapping[str, Any]], path: str, deadline_s: float) -> dict[str, bytes]:
        """Return another page of each of these pods, by its name, that answers within the deadline."""
        fleet = tuple(_peers(pods).values())
        answers = self._ask_alone(fleet, path, monotonic() + deadline_s)
        return {peer.pod: each for peer, each in zip(fleet, answers, strict=True) if isinstance(each, bytes)}

    def close(self) -> None:
        """Close the connections that wait for the next question."""
        self._exchanges.close()

    def _ask(self, fleet: Fleet, deadline_s: float) -> Answers:
        began_s = monotonic()
        read = self._ahead.take(fleet, began_s) or self._ask_along(fleet, began_s, deadline_s)
        if read is not None:
            return read
        answers = self._ask_alone(fleet, STATUS, began_s + deadline_s)
        if monotonic() - began_s < pages_ahead.LONGEST_S:
            self._ahead.note(fleet, answers, began_s)
        return answers

    def _ask_along(self, fleet: Fleet, now_s: float, deadline_s: float) -> Answers | None:
        """Ask a fleet, and with it those that are looked at soon; None where that is not for it, or it does not answer
        as soon as all others have to.
        """
        along = self._ahead.begin(fleet, now_s)
        if not along:
            return None
        found: dict[Fleet, list[Answer | None]] = {each: [None] * len(each) for each in (fleet, *along)}
        try:
            limits = {each: Limits(pages_ahead.MOST_BYTES, MOST_VALUES) for each in found}
            asked = {(each, at): Question(peer, limits[each]) for each in found for at, peer in enumerate(each)}
            ends_s = now_s + min(deadline_s, pages_ahead.LONGEST_S)
            for (each, at), answer in self._exchanges.answers(asked, STATUS, ends_s, len(asked)):
                found[each][at] = answer
        finally:
            own = self._ahead.end(fleet, found, now_s)
        return own

    def _ask_alone(self, fleet: Fleet, path: str, ends_s: float) -> Answers:
        limits = Limits(MOST_BYTES, MOST_VALUES)
        asked = {at: Question(peer, limits) for at, peer in enumerate(fleet)}
        found: list[Answer | None] = [None] * len(fleet)
        for at, answer in self._exchanges.answers(asked, path, ends_s, MOST_AT_ONCE):
            found[at] = answer
        return found


def _page(of: Peer, answer: Answer | None, deadline_s: float) -> RelayPage:
    if answer is None:
        return RelayPage(of.pod, None, f"did not answer within {deadline_s:g} s")
    if isinstance(answer, OSError | HTTPException):
        return RelayPage(of.pod, None, f"cannot be reached at {of.address}: {type(answer).__name__}")
    if isinstance(answer, ValueError):
        return RelayPage(of.pod, None, str(answer))
    try:
        return RelayPage(of.pod, RelayStatus.model_validate_json(answer, by_alias=True, by_name=False), None)
    except ValidationError:
        return RelayPage(of.pod, None, "answers something else than a relay's status")


def _peers(pods: Sequence[Mapping[str, Any]]) -> dict[int, Peer]:
    """Return those of the pods that have an address, by their place among them."""
    addresses = enumerate(page_address(pod) for pod in pods)
    return {at: Peer(pods[at]["metadata"]["name"], address) for at, address in addresses if address is not None}


def page_address(pod: Mapping[str, Any]) -> str | None:
    """Return `http://10.1.2.3:8080` of a pod that has an address and is not ended; else None."""
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or status.get("phase") in {"Succeeded", "Failed"}:
        return None
    ports = [port for container in pod["spec"].get("containers", []) for port in container.get("ports") or []]
    port = next((port["containerPort"] for port in ports if port.get("name") == "http"), DEFAULT_PORT)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
