"""Edge: the Kafka client's own log lines, through ours."""

from __future__ import annotations

import logging
import re
import time
from typing import Final

import structlog

REPEAT_S: Final = 10.0
"""The least time between two lines about the same trouble, by default."""
_NUMBER = re.compile(r"\d+")

log = structlog.get_logger("kafka")


class ClientLog(logging.Handler):
    """Takes the client library's records; what it says at warning and above is worth a line, now and then."""

    def __init__(self, repeat_s: float, place: dict[str, str]) -> None:
        super().__init__()
        self._repeat_s = repeat_s
        self._place = place
        self._said: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on, unless the same was said a moment ago; numbers do not make it another one."""
        text, now_s = record.getMessage(), time.monotonic()
        kind = _NUMBER.sub("#", text)
        if now_s - self._said.get(kind, -self._repeat_s) < self._repeat_s:
            return
        self._said = {said: at_s for said, at_s in self._said.items() if now_s - at_s < self._repeat_s}
        self._said[kind] = now_s
        log.log(record.levelno, "kafka client", text=text, **self._place)


def client_logger(name: str, repeat_s: float = REPEAT_S, **place: str) -> logging.Logger:
    """Return a logger of its own for one client, without the process-wide handlers; `place` is said in each line."""
    logger = logging.Logger(name, level=logging.WARNING)
    logger.addHandler(ClientLog(repeat_s, place))
    return logger
