"""Edge: the form of log lines: JSON on standard error, or colours on a terminal."""

from __future__ import annotations

from typing import TextIO

import structlog
from structlog.typing import Processor


def set_up_lines(guard: Processor, level: int, stream: TextIO) -> None:
    """Set up structlog for the whole process; `guard` takes out of each line what must not be printed."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            guard,
            _renderer(stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )


def _renderer(stream: TextIO) -> Processor:
    if stream.isatty():
        # The default formatter of exceptions shows local variables, and those hold payloads and credentials.
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer()
