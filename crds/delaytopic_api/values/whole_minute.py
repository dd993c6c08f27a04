"""Points in time to the minute as text, such as `2026-11-21T02:00:00+01:00`: RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, ClassVar, Self

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.parsed_text import ParsedText

_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:00(Z|[+-][0-9]{2}:[0-9]{2})"


class WholeMinute(ParsedText):
    """The beginning of a minute; `ms` is its value in epoch milliseconds."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "format": "date-time",
        "maxLength": 25,
        "pattern": f"^{_PATTERN}$",
    }
    example: ClassVar[str] = "2026-11-21T02:00:00Z or 2026-11-21T03:00:00+01:00"
    ms: int

    def __new__(cls, text: str) -> Self:
        """Parse the text; raises `InvalidText`."""
        if re.fullmatch(_PATTERN, text, re.ASCII) is None:
            raise InvalidText(f'"{text}" is not the beginning of a minute; write it like {cls.example}')
        try:
            moment = datetime.fromisoformat(text)
            moment_ms = round(moment.timestamp() * 1_000)
        except (ValueError, OverflowError) as error:
            raise InvalidText(f'"{text}" is no date and time: {error}') from error
        minute = super().__new__(cls, text)
        minute.ms = moment_ms
        return minute
