"""A call that can be suspended in its middle while others run: a thread of its own, with a strict hand-over.

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
        self._may_go = threading.Semaphore(0)
        self._has_stopped = threading.Semaphore(0)
        self._killed = False
        self._failure: BaseException | None = None
        self.over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Let it go on until it pauses (`over` is false) or ends; raises what it raises."""
        self._may_go.release()
        self._has_stopped.acquire()
        if self.over:
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def pause(self) -> None:
        """From inside the call: wait for the next `resume`."""
        self._has_stopped.release()
        self._may_go.acquire()
        if self._killed:
            raise Crash("killed while frozen")

    def kill(self) -> None:
        """End it where it is."""
        self._killed = True
        try:
            self.resume()
        except Crash:
            self.over = True

    def _run(self) -> None:
        self._may_go.acquire()
        try:
            if not self._killed:
                self._call()
        except BaseException as error:
            self._failure = error
        self.over = True
        self._has_stopped.release()
