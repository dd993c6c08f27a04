"""Edge: the clock of one run of `delaytopic local`, which tests move: a file that its relays read."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from delaytopic_gateway.errors import ConflictError, RelayUnreachableError
from delaytopic_gateway.service.clock import LONGEST_MS, Reading
from delaytopic_process.errors import InputError

FOLLOWED_SECONDS: Final = 30.0
_TURN_SECONDS: Final = 0.01
_TIMEOUT_SECONDS: Final = 2.0


class Watched(NamedTuple):
    """A DelayTopic whose relays follow the clock: its name, and the addresses of their pages as they are now."""

    name: str
    partitions: int
    urls: Callable[[], Sequence[str]]


class LocalClock:
    """Implements `MovableClock` over the relays of all DelayTopics; it only goes forward."""

    def __init__(self, file: Path) -> None:
        """The file is made if it is not there; with the data of a former run the clock goes on. Raises `InputError`."""
        self.file = file
        self._lock = Lock()
        self._watched: Sequence[Watched] = ()
        try:
            self.shift_ms = int(file.read_text(encoding="ascii")) if file.exists() else 0
        except (OSError, ValueError) as error:
            raise InputError(f"{file} must hold the milliseconds by which the clock is ahead: {error}") from error
        self._asked_ms = self.shift_ms
        """The shift that relays were told: a move that failed may be in force for some partitions."""
        self._write(self.shift_ms)

    def watch(self, watched: Sequence[Watched]) -> None:
        """Wait for the relays of these DelayTopics with each move."""
        self._watched = watched

    def read(self) -> Reading:
        """See `MovableClock.read`."""
        return Reading(self.now_ms(), self.shift_ms)

    def now_ms(self) -> int:
        """Return what it shows, in epoch milliseconds."""
        return time.time_ns() // 1_000_000 + self.shift_ms

    def advance(self, duration_ms: int) -> Reading:
        """See `MovableClock.advance`. A move that fails is made with the next one, beyond it."""
        with self._lock:
            wanted_ms = self._asked_ms + duration_ms
            if wanted_ms > LONGEST_MS:
                raise ConflictError("advance: the clock would be more than a hundred years ahead; start anew instead")
            self._asked_ms = wanted_ms
            self._write(wanted_ms)
            give_up_s = time.monotonic() + FOLLOWED_SECONDS
            for each in self._watched:
                _wait_until_shown(each, wanted_ms, give_up_s)
            self.shift_ms = wanted_ms
            return self.read()

    def _write(self, shift_ms: int) -> None:
        draft = self.file.with_suffix(".draft")
        draft.write_text(str(shift_ms), encoding="ascii")
        draft.replace(self.file)


def _wait_until_shown(watched: Watched, shift_ms: int, give_up_s: float) -> None:
    """Wait until the relays together have committed the shift for all partitions.

    What one has committed holds for whoever has the partition next. Raises `ConflictError` where one cannot follow,
    and `RelayUnreachableError`.
    """
    shown: set[int] = set()
    while True:
        waits: dict[str, str] = {}
        for url in watched.urls():
            page = read_clock(url)
            shown |= {int(number) for number, shown_ms in page.get("shownMs", {}).items() if shown_ms >= shift_ms}
            waits |= page.get("waits", {})
        if len(shown) >= watched.partitions:
            return
        late = [number for number in waits if int(number) not in shown]
        if late:
            raise ConflictError(
                f"advance: partition {late[0]} of {watched.name} cannot follow the clock yet: {waits[late[0]]}. "
                "Deliver or cancel what waits longest, and advance by a little, as the clock was moved for others"
            )
        if time.monotonic() >= give_up_s:
            raise RelayUnreachableError(
                f"the relays of {watched.name} have not followed the clock for {FOLLOWED_SECONDS:g} s: "
                f"{len(shown)} of {watched.partitions} partitions have; see their logs, and advance again"
            )
        time.sleep(_TURN_SECONDS)


def read_clock(url: str) -> Mapping[str, Any]:
    """Return what a relay tells of its clock; nothing if it does not answer."""
    try:
        with urllib.request.urlopen(f"{url}/clock", timeout=_TIMEOUT_SECONDS) as answer:
            found = json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
