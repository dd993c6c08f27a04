"""A call that can be suspended in its middle while others run: in a thread of its own, with a strict hand-over.

Only ever one thread runs, so that everything stays deterministic. Most calls need no strand: it is made for
those in which a freeze is due.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.simulation.faults import Crash


class Strand:
    """One call; `resume` runs it until it pauses or ends."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._runner = _IDLE.pop() if _IDLE else _Runner()
        self._has_stopped = _closed()
        self._killed = False
        self._failure: BaseException | None = None
        self.over = False
        self._runner.strand = self

    def resume(self) -> None:
        """Let it go on until it pauses (`over` is false) or ends; raises what it raises."""
        self._runner.may_go.release()
        self._has_stopped.acquire()
        if self._failure is not None:
            raise self._failure

    def pause(self) -> None:
        """From inside the call: wait for the next `resume`."""
        self._has_stopped.release()
        self._runner.may_go.acquire()
        if self._killed:
            raise Crash("killed while frozen")

    def kill(self) -> None:
        """End it where it is."""
        self._killed = True
        try:
            self.resume()
        except Crash:
            self.over = True

    def run(self) -> None:
        """Run the call, in the thread of its runner."""
        try:
            if not self._killed:
                self._call()
        except BaseException as error:
            self._failure = error
        self.over = True
        _IDLE.append(self._runner)
        self._has_stopped.release()


class _Runner(threading.Thread):
    """A thread that runs one strand after another: starting one costs as much as a whole step of a relay."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.may_go = _closed()
        self.strand: Strand | None = None
        self.start()

    def run(self) -> None:
        while True:
            self.may_go.acquire()
            assert self.strand is not None
            self.strand.run()


def _closed() -> threading.Lock:
    """A lock as a gate between two threads: one waits in `acquire` until the other calls `release`."""
    lock = threading.Lock()
    lock.acquire()
    return lock


_IDLE: list[_Runner] = []
