"""Edge: the newest verdicts of audits that go on, over HTTP: /livez and /verdicts. But for the server itself, pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from secrets import token_hex
from threading import Lock
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from delaytopic_api import Duration
from delaytopic_cli.audit.publishing import status_text
from delaytopic_process.errors import InputError
from delaytopic_process.pages import Answer, CannotListen, Health, Pages, health_answer

NDJSON: Final = "application/x-ndjson"
PAGE_LINES: Final = 500
LEAST_LIVE_S: Final = 3_600
"""An audit of many records may take long: a new process would begin it anew."""
LIVE_ROUNDS: Final = 3


class _Verdict(NamedTuple):
    number: int
    text: str


class Verdicts:
    """The newest status document of each DelayTopic, and the last sign of life. For any thread."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        """`clock_s` is one that is never set. The first round has as long to begin as others have to end."""
        self._clock_s = clock_s
        self._lock = Lock()
        self._process = token_hex(4)
        self._number = 0
        self._verdicts: dict[str, _Verdict] = {}
        self._sign = "this process began"
        self._sign_s = clock_s()

    def put(self, document: dict[str, Any]) -> None:
        """Take a DelayTopic's status document in the place of the one before: a sign of life."""
        text = status_text(document)
        with self._lock:
            self._number += 1
            self._verdicts[document["delayTopic"]] = _Verdict(self._number, text)
        self._saw("the last verdict was given")

    def keep_only(self, names: Collection[str]) -> None:
        """Drop the verdicts on all other DelayTopics; `names` are as in `namespace/name`."""
        with self._lock:
            self._verdicts = {name: verdict for name, verdict in self._verdicts.items() if name in names}

    def after(self, mark: str) -> list[str]:
        """Return a page of documents, each as one line of JSON, in the order in which they were given.

        They are those that came after a mark, which is in the last line: `{"after": "..."}`. All of them, where the
        mark is none of this process. Not by their own times: an audit that began earlier may end later.
        """
        with self._lock:
            process, _, number = mark.partition("-")
            seen = int(number) if process == self._process and number.isdigit() else 0
            news = sorted(verdict for verdict in self._verdicts.values() if verdict.number > seen)[:PAGE_LINES]
            last = news[-1].number if news else seen
            return [*(verdict.text for verdict in news), json.dumps({"after": f"{self._process}-{last}"})]

    def round_began(self) -> None:
        """Take it for a sign of life."""
        self._saw("the present round began")

    def round_ended(self) -> None:
        """Take it for a sign of life."""
        self._saw("the last round ended")

    def health(self, live_s: float) -> Health:
        """Tell whether the last sign of life is younger than `live_s`."""
        now_s = self._clock_s()
        with self._lock:
            sign, age_s = self._sign, now_s - self._sign_s
        if age_s < live_s:
            return Health(True, "ok")
        return Health(False, f"{sign} {age_s:.0f} s ago, and nothing since; {live_s:.0f} s are the limit")

    def _saw(self, sign: str) -> None:
        now_s = self._clock_s()
        with self._lock:
            self._sign, self._sign_s = sign, now_s


def live_seconds(every: Duration) -> float:
    """Return how long after its last sign of life a service of such rounds still counts as alive."""
    return max(LEAST_LIVE_S, LIVE_ROUNDS * every.ms / 1_000)


@contextmanager
def serving(address: tuple[str, int], verdicts: Verdicts, live_s: float) -> Iterator[int]:
    """Serve the pages meanwhile, from threads of their own, and yield the port; port 0 takes any free one.

    Raises InputError when the address cannot be had.
    """
    host, port = address
    pages = {
        "/livez": lambda _: health_answer(verdicts.health(live_s)),
        "/verdicts": lambda request: _verdicts_answer(verdicts, request.parameters),
    }
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
    mark = parse_qs(parameters).get("after", [""])[0]
    return Answer(HTTPStatus.OK, NDJSON, "".join(f"{line}\n" for line in verdicts.after(mark)).encode())
