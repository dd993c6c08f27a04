"""Edge: gives a blocking call of a client library an end.

`send_offsets_to_transaction` of librdkafka does not keep its timeout when the group's coordinator goes
away (librdkafka issues 5456 and 5511): it may wait for ever. Such a call is left to its thread, and the
client that it belongs to has to be replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

Call = Callable[[], object]
Outcome = BaseException | None


class BoundedCalls:
    """Runs calls one after the other in a thread of its own, which is left behind when a call does not return."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self._start()

    def _start(self) -> None:
        self._calls, self._outcomes = SimpleQueue(), SimpleQueue()
        Thread(target=_serve, args=(self._calls, self._outcomes), name="bounded-calls", daemon=True).start()

    def run(self, call: Call, timeout_s: float) -> None:
        """Run a call, raise what it raises, and `TimeoutError` when it takes longer."""
        self._calls.put(call)
        try:
            outcome = self._outcomes.get(timeout=timeout_s)
        except Empty:
            self._start()
            raise TimeoutError(f"no return within {timeout_s:.0f} s") from None
        if outcome is not None:
            raise outcome


def _serve(calls: SimpleQueue[Call], outcomes: SimpleQueue[Outcome]) -> None:
    while True:
        try:
            calls.get()()
            outcomes.put(None)
        except BaseException as error:
            outcomes.put(error)
