"""Edge: the Kafka client's own log lines, through ours."""

from __future__ import annotations

import logging

import structlog

log = structlog.get_logger("kafka")


class ClientLog(logging.Handler):
    """Takes the client library's records; what it says at warning and above is worth a line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one line on."""
        log.log(record.levelno, "kafka client", text=record.getMessage())


def client_logger(name: str) -> logging.Logger:
    """A logger of its own for one client, without the process-wide handlers."""
    logger = logging.Logger(name, level=logging.WARNING)
    logger.addHandler(ClientLog())
    return logger
