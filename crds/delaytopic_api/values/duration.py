"""Durations as text, such as `1h30m`: the grammar of GEP-2257, which Kubernetes' rules language parses, too."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Self

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.parsed_text import ParsedText

_PATTERN = "^([0-9]{1,5}(h|m|s|ms)){1,4}$"
_DURATION = re.compile("([0-9]{1,5}(h|m|s|ms)){1,4}", re.ASCII)
_PART = re.compile("([0-9]+)(ms|[hms])", re.ASCII)
_LONGER_UNITS = re.compile("([0-9]{1,4})([dw])", re.ASCII)
_UNIT_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_LONGER_UNIT_HOURS = {"d": 24, "w": 168}
_LONGEST_MS = 100_000 * _UNIT_MS["h"] - 1


class Duration(ParsedText):
    """A length of time of one to four parts of hours, minutes, seconds and milliseconds; `ms` is its value."""

    schema: ClassVar[dict[str, Any]] = {"type": "string", "minLength": 2, "maxLength": 28, "pattern": _PATTERN}
    example: ClassVar[str] = "500ms, 90s or 1h30m"
    ms: int

    def __new__(cls, text: str) -> Self:
        """Parse the text; raises `InvalidText`."""
        if not _DURATION.fullmatch(text):
            raise InvalidText(f'"{text}" is not a duration; {_hint(text)}')
        duration = super().__new__(cls, text)
        duration.ms = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART.findall(text))
        return duration

    @classmethod
    def of_ms(cls, ms: int) -> Self:
        """The shortest text for a number of milliseconds; raises `InvalidText` below 0 and from 100000 hours on."""
        if not 0 <= ms <= _LONGEST_MS:
            raise InvalidText(f"{ms} ms is not a duration; it must be between 0 and 99999 hours")
        parts = []
        rest = ms
        for unit, unit_ms in _UNIT_MS.items():
            number, rest = divmod(rest, unit_ms)
            if number:
                parts.append(f"{number}{unit}")
        return cls("".join(parts) or "0s")


def between(shortest: str, longest: str) -> Checked:
    """A pydantic rule: the duration lies within these bounds, both included."""
    least, most = Duration(shortest), Duration(longest)

    def check(duration: Duration) -> Duration:
        if not least.ms <= duration.ms <= most.ms:
            raise InvalidText(f'"{duration}" is out of range; it must be between {least} and {most}')
        return duration

    in_range = f"duration(self) >= duration('{least}') && duration(self) <= duration('{most}')"
    return Checked(check, Rule(in_range, f"must be between {least} and {most}"))


def _hint(text: str) -> str:
    longer = _LONGER_UNITS.fullmatch(text)
    if longer is None:
        return f"write it like {Duration.example}"
    number, unit = longer.groups()
    return f"the longest unit is the hour: write {int(number) * _LONGER_UNIT_HOURS[unit]}h"
