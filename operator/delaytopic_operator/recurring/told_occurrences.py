"""Edge: asks relays for the last delivery of a record that recurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from pydantic import ValidationError

from delaytopic_api.relay import LastOccurrence
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.relay_pages import RelayPages

DEADLINE_S = 3.0


class ToldOccurrences:
    """Thread-safe for different keys. What it remembers is lost with the process, and saves questions alone."""

    def __init__(self, pages: RelayPages) -> None:
        """`pages` reads what relays say of themselves."""
        self._pages = pages
        self._answered: dict[Key, str] = {}
        """The pod that told the last delivery of an object: it is asked first."""

    def latest(self, key: Key, name: str, pods: Sequence[Mapping[str, Any]], known_ms: int) -> LastOccurrence | None:
        """Return the last delivery under an id that any of these pods knows of; never raises.

        Others are asked if the pod that told the one before knows of no later slot than `known_ms`: the partition may
        be another relay's by now.
        """
        path = f"/occurrence?{urlencode({'id': name})}"
        first = [pod for pod in pods if pod["metadata"]["name"] == self._answered.get(key)]
        told: dict[str, LastOccurrence] = {}
        for asked in (first, [pod for pod in pods if pod not in first]):
            if asked and all(each.slot_ms <= known_ms for each in told.values()):
                answers = self._pages.fetch_each(asked, path, DEADLINE_S)
                told |= {pod: found for pod, answer in answers.items() if (found := _occurrence(answer)) is not None}
        if not told:
            self.forget(key)
            return None
        self._answered[key] = max(told, key=lambda pod: told[pod].slot_ms)
        return told[self._answered[key]]

    def forget(self, key: Key) -> None:
        """Forget an object that is no more."""
        self._answered.pop(key, None)


def _occurrence(answer: bytes) -> LastOccurrence | None:
    try:
        return LastOccurrence.model_validate_json(answer, by_alias=True, by_name=False)
    except ValidationError:
        return None
