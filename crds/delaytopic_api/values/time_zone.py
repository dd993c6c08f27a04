"""Time zones by the names that the IANA gave them, such as `Europe/Berlin`."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import KEY, Rule
from delaytopic_api.values.parsed_text import ParsedText

# Names that depend on the machine, as `localtime` does, begin with a small letter.
_PATTERN = "[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*"
# An unknown zone makes the expression an error, which says so: "unknown time zone Europe/Berln". The server's own is
# called Local.
_KNOWN = Rule(
    "self != 'Local' && timestamp('2000-01-01T00:00:00Z').getFullYear(self) > 0",
    "is not a known time zone; write it as the IANA does, like Europe/Berlin",
)


class TimeZone(ParsedText):
    """The name of a time zone; `zone` has its offsets."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "maxLength": 64,
        "pattern": f"^{_PATTERN}$",
        KEY: [_KNOWN.document()],
    }
    example: ClassVar[str] = "Europe/Berlin or UTC"
    zone: ZoneInfo

    def __new__(cls, text: str) -> Self:
        """Look the zone up; raises `InvalidText`."""
        unknown = f'"{text}" is not a known time zone; write it as the IANA does, like {cls.example}'
        if len(text) > cls.schema["maxLength"] or re.fullmatch(_PATTERN, text, re.ASCII) is None:
            raise InvalidText(unknown)
        try:
            zone = ZoneInfo(text)
        # A folder of zones, such as Europe, is none either.
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidText(unknown) from error
        name = super().__new__(cls, text)
        name.zone = zone
        return name
