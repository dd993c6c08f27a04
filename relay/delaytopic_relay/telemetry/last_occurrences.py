"""The last delivery of each record that recurs, for those who ask by its id."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from delaytopic_api.records import OCCURRENCE
from delaytopic_api.recurrence import Occurrence
from delaytopic_api.relay import LastOccurrence
from delaytopic_process.pages import JSON, Answer, Request, text_answer
from delaytopic_relay.core.commands import Schedule

MOST: Final = 10_000
"""Ids, those that were delivered last: some megabytes. Whoever asks does so within a minute of a delivery."""

NOT_KNOWN: Final = "no occurrence of this id has left since this relay started, or another relay has its partition"


class LastOccurrences:
    """The loop notes, and threads of pages read. A relay knows of none before it started."""

    def __init__(self) -> None:
        self._sent: list[tuple[bytes, bytes | None, int]] = []
        self._left: dict[bytes, tuple[bytes | None, int]] = {}
        """The header and the time of sending by id, in the order of delivery."""

    def sent(self, left: Sequence[Schedule], sent_ms: int) -> None:
        """Note occurrences that were produced, and that count once committed."""
        self._sent += [(each.id or b"", dict(each.headers or ()).get(OCCURRENCE), sent_ms) for each in left]

    def committed(self) -> None:
        """All that was noted is committed."""
        for name, header, sent_ms in self._sent:
            self._left.pop(name, None)
            self._left[name] = (header, sent_ms)
            if len(self._left) > MOST:
                del self._left[next(iter(self._left))]
        self._sent = []

    def reset(self) -> None:
        """Drop what was noted since the last commit, which does not count."""
        self._sent = []

    def of(self, name: bytes) -> LastOccurrence | None:
        """Return the last delivery under an id."""
        header, sent_ms = self._left.get(name, (None, 0))
        found = Occurrence.parse(header, sent_ms)
        return found and LastOccurrence(number=found.number, slot_ms=found.nominal_ms, sent_ms=sent_ms)

    def page(self, request: Request) -> Answer:
        """Answer `GET /occurrence?id=ID`. Only who knows an id learns of it."""
        asked = parse_qsl(request.parameters, keep_blank_values=True)
        if [name for name, _ in asked] != ["id"]:
            return text_answer(HTTPStatus.BAD_REQUEST, "name one id: /occurrence?id=ID")
        found = self.of(asked[0][1].encode("utf-8", "surrogatepass"))
        if found is None:
            return text_answer(HTTPStatus.NOT_FOUND, NOT_KNOWN)
        return Answer(HTTPStatus.OK, JSON, found.to_json().encode())
