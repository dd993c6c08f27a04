"""Percentages as text, such as `99.9%`: never floats, which do not survive a round trip through every client."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, ClassVar, Self

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.parsed_text import ParsedText

_PERCENT = re.compile(r"(100|[0-9]{1,2}(?:\.[0-9]{1,4})?)%", re.ASCII)


class Percent(ParsedText):
    """A share between 0% and 100% with up to four decimals; `ratio` is its exact value between 0 and 1."""

    schema: ClassVar[dict[str, Any]] = {"type": "string", "maxLength": 8, "pattern": f"^{_PERCENT.pattern}$"}
    example: ClassVar[str] = "60% or 99.9%"
    ratio: Fraction

    def __new__(cls, text: str) -> Self:
        """Parse the text; raises `InvalidText`."""
        match = _PERCENT.fullmatch(text)
        if match is None:
            raise InvalidText(f'"{text}" is not a percentage; write it like {cls.example}')
        percent = super().__new__(cls, text)
        percent.ratio = Fraction(match[1]) / 100
        return percent
