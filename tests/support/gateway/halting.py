"""A producer that stops its own process at one moment of its second transaction, to be killed or thawed there."""

from __future__ import annotations

import signal
import threading
from typing import Any

from confluent_kafka import Producer

from delaytopic_gateway.client import resending
from delaytopic_gateway.client.kafka_clients import producer

SECOND = 2


class _Halting:
    """Passes everything on."""

    def __init__(self, real: Producer, when: str) -> None:
        self._real, self._when, self._commits = real, when, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit_transaction(self, timeout_s: float) -> None:
        self._commits += 1
        self._halt_if("before")
        self._real.commit_transaction(timeout_s)
        self._halt_if("after")

    def _halt_if(self, moment: str) -> None:
        if self._commits == SECOND and self._when == moment:
            # Sent to this thread, which runs nothing more. Sent to the process, another thread would take it, and
            # this one would go on until that one has a processor: through the commit, on a busy machine.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def halt_in_second_transaction(when: str, batch_records: int) -> None:
    """Let all that is sent again from here on stop `before` or `after` its second commit, of so many records each."""
    resending.producer = lambda *settings: _Halting(producer(*settings), when)  # type: ignore[assignment,attr-defined]
    resending.BATCH_RECORDS = batch_records
