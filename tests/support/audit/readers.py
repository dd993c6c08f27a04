"""A reader of an audit's verdicts, as the operator is one: it keeps all that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.audit_verdict import VerdictMessage
from delaytopic_operator.observe.relay_pages import RelayPages
from delaytopic_operator.observe.told_verdicts import ToldVerdicts

AUDIT = Key("", "standard")
POLL_S = 0.1


class Reader:
    """Reads the verdict on one DelayTopic."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._pages = RelayPages(poll_s=15.0)
        self._told = ToldVerdicts(self._pages)

    def read(self, pod: dict[str, Any]) -> None:
        """Ask a pod, and say what was kept by now."""
        self._told.refresh(AUDIT, [pod], {self._key}, lambda _: True)
        self._pages.close()  # nobody knows which time is the last

    @property
    def message(self) -> VerdictMessage | None:
        """The verdict; None: there was none yet."""
        return self._told.message_of(AUDIT, self._key)

    @contextmanager
    def reading(self, host: str, port: int) -> Iterator[None]:
        """Read again and again meanwhile."""
        container = {"name": "audit", "ports": [{"name": "http", "containerPort": port}]}
        pod = {"metadata": {"name": "audit"}, "spec": {"containers": [container]}, "status": {"podIP": host}}
        ending = Event()

        def read_on() -> None:
            while not ending.wait(POLL_S):
                self.read(pod)

        thread = Thread(target=read_on)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()
