"""Edge: log lines, JSON on standard error, or colours on a terminal; those of libraries, too. Never a secret."""

from __future__ import annotations

import logging
import re
import sys
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

from delaytopic_process.log_lines import set_up_lines

LEVELS: Final = ("debug", "info", "warning", "error")
REDACTED: Final = "<redacted>"
NOISY: Final = ("kopf", "aiohttp", "asyncio", "urllib3", "kubernetes")
"""Libraries that tell of every event, or of every request."""

_SECRET_NAME = re.compile(r"(password|passwd|secret_?data|token|credential)(?!.*(file|name)$)", re.IGNORECASE)
_URL_CREDENTIALS = re.compile(r"(\w+://)[^\s/@]*@")
_BEARER = re.compile(r"(bearer )[-._~+/=\w]+", re.IGNORECASE)


def configure_logs(level: str = "info", stream: TextIO | None = None) -> None:
    """Set up structlog and `logging` for the whole process; `stream` is standard error unless given."""
    least = logging.getLevelNamesMapping()[level.upper()]
    set_up_lines(guard, least, stream if stream is not None else sys.stderr)
    root = logging.getLogger()
    root.handlers[:] = [_ToStructlog()]
    # Debug lines of libraries tell of every byte.
    root.setLevel(max(least, logging.INFO))
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.INFO if least < logging.INFO else max(least, logging.WARNING))


def guard(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Structlog processor: takes out what may be secret."""
    return {name: _guarded(name, value) for name, value in event.items()}


class _ToStructlog(logging.Handler):
    """Lines of libraries, in the same form as the operator's own."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            log = structlog.get_logger(library=record.name)
            log.log(record.levelno, record.getMessage(), exc_info=record.exc_info)
        except Exception:
            self.handleError(record)


def _guarded(name: object, value: object) -> object:
    if isinstance(name, str) and _SECRET_NAME.search(name):
        return REDACTED
    if isinstance(value, str):
        return _BEARER.sub(rf"\1{REDACTED}", _URL_CREDENTIALS.sub(rf"\1{REDACTED}@", value))
    if isinstance(value, dict):
        return {str(key): _guarded(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_guarded(None, item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _guarded(None, str(value))
