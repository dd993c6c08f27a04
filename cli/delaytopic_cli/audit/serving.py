"""Edge: the verdicts of an audit over HTTP, `/verdicts`, until somebody has kept them. All but the server is pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from secrets import token_hex
from threading import Condition
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from delaytopic_cli.audit.publishing import status_text
from delaytopic_process.errors import InputError
from delaytopic_process.pages import Answer, CannotListen, Pages

NDJSON: Final = "application/x-ndjson"
PAGE_LINES: Final = 500
LONGEST_WAIT_S: Final = 600.0
"""The time that the verdicts wait for their reader, such as an operator that is being upgraded."""


class _Verdict(NamedTuple):
    number: int
    text: str


class Verdicts:
    """The status document of each DelayTopic, and how many of them their reader has kept. For any thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._process = token_hex(4)
        self._kept = 0
        self._verdicts: dict[str, _Verdict] = {}
        self._number = 0

    def put(self, document: dict[str, Any]) -> None:
        """Take a DelayTopic's status document, in the place of the one before."""
        text = status_text(document)
        with self._changed:
            self._number += 1
            self._verdicts[document["delayTopic"]] = _Verdict(self._number, text)

    def after(self, mark: str) -> list[str]:
        """Return a page of documents, each as one line of JSON, in the order in which they were given.

        They are those that came after a mark, which is in the last line: `{"after": "..."}`. All of them, where the
        mark is none of this process.
        """
        with self._changed:
            seen = self._number_of(mark)
            news = sorted(verdict for verdict in self._verdicts.values() if verdict.number > seen)[:PAGE_LINES]
            last = news[-1].number if news else seen
            return [*(verdict.text for verdict in news), json.dumps({"after": f"{self._process}-{last}"})]

    def note_kept(self, mark: str) -> None:
        """Note that the reader has written down all that came up to a mark: it will not ask for that again."""
        with self._changed:
            self._kept = max(self._kept, self._number_of(mark))
            self._changed.notify_all()

    def await_kept(self, longest_s: float) -> bool:
        """Wait until the reader has kept all of them, for so long at most; return whether it has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._kept >= self._number, longest_s)

    def _number_of(self, mark: str) -> int:
        process, _, number = mark.partition("-")
        return int(number) if process == self._process and number.isdecimal() else 0


@contextmanager
def serving(address: tuple[str, int], verdicts: Verdicts) -> Iterator[int]:
    """Serve the page meanwhile, from threads of its own, and yield the port; port 0 takes any free one.

    Raises InputError when the address cannot be had.
    """
    host, port = address
    pages = {"/verdicts": lambda request: _verdicts_answer(verdicts, request.parameters)}
    server = Pages("delaytopic-audit", host, port, pages)
    try:
        server.start()
    except CannotListen as error:
        raise InputError(
            f"--serve: cannot listen on {host}:{port}: {error}; choose another, or port 0 for any free one"
        ) from error
    try:
        yield server.port
    finally:
        server.stop()


def _verdicts_answer(verdicts: Verdicts, parameters: str) -> Answer:
    asked = parse_qs(parameters)
    verdicts.note_kept(asked.get("kept", [""])[0])
    lines = verdicts.after(asked.get("after", [""])[0])
    return Answer(HTTPStatus.OK, NDJSON, "".join(f"{line}\n" for line in lines).encode())
