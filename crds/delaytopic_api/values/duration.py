"""Durations as text, such as `1h30m` or `1.5h`: what Go's time.ParseDuration reads, and with it Kubernetes and its
rules language, of whole milliseconds that are not negative.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final, Self

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.parsed_text import ParsedText

_PARTS = (
    r"([0-9]+(\.[0-9]{0,5}0*)?|\.[0-9]{1,5}0*)h",
    r"([0-9]+(\.[0-9]{0,4}0*)?|\.[0-9]{1,4}0*)m",
    r"([0-9]+(\.[0-9]{0,3}0*)?|\.[0-9]{1,3}0*)s",
    r"([0-9]+(\.0*)?|\.0+)ms",
    "([0-9]+000|0+)(\\.0*)?(us|\u00b5s|\u03bcs)",
    r"([0-9]+000000|0+)(\.0*)?ns",
)
"""Each number with its unit is a whole number of milliseconds: an hour has up to five decimals, and so on. A pattern
says so, as the sum is more than a rule of the API server may calculate."""
_PATTERN = rf"[+]?(0|({'|'.join(_PARTS)})+)"
_DURATION = re.compile(_PATTERN, re.ASCII)
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(h|ms|m|s|us|\u00b5s|\u03bcs|ns)", re.ASCII)
_LONGER_UNITS = re.compile("([0-9]{1,4})([dw])", re.ASCII)
_UNIT_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_UNIT_NS = {unit: ms * 1_000_000 for unit, ms in _UNIT_MS.items()} | {
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ns": 1,
}
_LONGER_UNIT_HOURS = {"d": 24, "w": 168}
_LONGEST_MS = 100_000 * _UNIT_MS["h"] - 1
_LONGEST_TEXT: Final = 28
_LONGEST_NS = 2**63 - 1


class Duration(ParsedText):
    """A length of time of whole milliseconds, such as 500ms, 1.5h or 1h30m; `ms` is its value."""

    schema: ClassVar[dict[str, Any]] = {
        "type": "string",
        "maxLength": _LONGEST_TEXT,
        "pattern": f"^{_PATTERN}$",
    }
    example: ClassVar[str] = "500ms, 90s or 1h30m"
    ms: int

    def __new__(cls, text: str) -> Self:
        """Parse the text; raises `InvalidText`."""
        if len(text) > _LONGEST_TEXT or not _DURATION.fullmatch(text):
            raise InvalidText(f'"{text}" is not a duration; {_hint(text)}')
        ns = sum(_part_ns(*part) for part in _PART.findall(text))
        if ns > _LONGEST_NS:
            raise InvalidText(f'"{text}" is too long for a duration; {_hint(text)}')
        duration = super().__new__(cls, text)
        duration.ms = ns // 1_000_000
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


def _part_ns(whole: str, fraction: str, unit: str) -> int:
    """Return the nanoseconds of one number with its unit; what is less than one of them does not count, as in Go."""
    unit_ns = _UNIT_NS[unit]
    of_fraction: int = int(fraction or 0) * unit_ns // 10 ** len(fraction)
    return int(whole or 0) * unit_ns + of_fraction


def _hint(text: str) -> str:
    longer = _LONGER_UNITS.fullmatch(text)
    if longer is None:
        return f"write it like {Duration.example}"
    number, unit = longer.groups()
    return f"the longest unit is the hour: write {int(number) * _LONGER_UNIT_HOURS[unit]}h"
