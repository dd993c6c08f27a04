"""Edge: log lines. JSON on standard error, or colours on a terminal; never a payload, never a secret."""

from __future__ import annotations

import logging
import re
import sys
from os import PathLike
from typing import Final, TextIO

from structlog.typing import EventDict, WrappedLogger

from delaytopic_process.log_lines import set_up_lines

REDACTED: Final = "<redacted>"

_SECRET_NAME = re.compile(r"(password|passwd|secret|token|credential)(?!.*file$)", re.IGNORECASE)
"""Names of things not to print. The name of a file that holds a secret is none."""
_URL_CREDENTIALS = re.compile(r"(\w+://)[^\s/@]*@")


def configure_logs(level: str = "info", stream: TextIO | None = None) -> None:
    """Set up structlog for the whole process; `stream` is standard error unless given."""
    set_up_lines(guard, logging.getLevelNamesMapping()[level.upper()], stream if stream is not None else sys.stderr)


def guard(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Structlog processor: replaces secrets, and everything that may hold a payload, by what may be printed."""
    return {name: _guarded(name, value) for name, value in event.items()}


def _guarded(name: object, value: object) -> object:
    if isinstance(name, str) and _SECRET_NAME.search(name):
        return REDACTED
    if isinstance(value, str):
        return _URL_CREDENTIALS.sub(rf"\1{REDACTED}@", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _guarded(key, item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_guarded(None, item) for item in value]
    return _summary(value)


def _summary(value: object) -> str:
    # Payloads, keys and header values are bytes, and the repr of a record shows them.
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, BaseException | PathLike):
        return str(_guarded(None, str(value)))
    return f"<{type(value).__name__}>"
