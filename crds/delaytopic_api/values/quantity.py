"""Sizes as text, such as `256Mi`: the grammar of Kubernetes' resource quantities."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any, ClassVar, Self

from delaytopic_api.errors import InvalidText
from delaytopic_api.values.cluster_rules import KEY, Rule
from delaytopic_api.values.parsed_text import ParsedText

_QUANTITY = re.compile(
    r"([+-]?)([0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?", re.ASCII
)
_BINARY = {unit + "i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", 1)}
_DECIMAL = {unit: Fraction(1000) ** power for power, unit in enumerate(["n", "u", "m", "", "k", *"MGTPE"], -3)}
_SCALES = _BINARY | _DECIMAL
_LARGEST = 2**63 - 1
_GRAMMAR = r"^\+?(([0-9]{1,40}(\.[0-9]{0,40})?)|(\.[0-9]{1,40}))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$"
_IN_RANGE = Rule(
    "quantity(string(self)).compareTo(quantity('0')) >= 0 && quantity(string(self)).compareTo(quantity('8Ei')) < 0",
    "must not be negative, and less than 8Ei",
)


class Quantity(ParsedText):
    """A number of bytes, as Kubernetes writes it; `value` is the number, rounded up."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": _GRAMMAR,
        "maxLength": 100,
        "x-kubernetes-int-or-string": True,
        KEY: [_IN_RANGE.document()],
    }
    example: ClassVar[str] = "256Mi, 1.5Gi or 500M"
    value: int
    exact: Fraction
    """The number itself: a tenth of a processor is less than one."""

    def __new__(cls, text: str) -> Self:
        """Parse the text; raises `InvalidText`."""
        match = _QUANTITY.fullmatch(text)
        if match is None:
            raise InvalidText(f'"{text}" is not a quantity; write it like {cls.example}')
        sign, number, suffix = match.groups()
        if sign == "-":
            raise InvalidText(f'"{text}" is not allowed; a quantity is not negative')
        exact = Fraction(number.rstrip(".")) * _scale(suffix or "")
        value = math.ceil(exact)
        if value > _LARGEST:
            raise InvalidText(f'"{text}" is too large; a quantity is less than 8Ei')
        quantity = super().__new__(cls, text)
        quantity.value, quantity.exact = value, exact
        return quantity

    @classmethod
    def of(cls, value: object) -> Self:
        """A whole number counts as its text, as everywhere in Kubernetes."""
        if isinstance(value, int) and not isinstance(value, bool):
            return cls(str(value))
        return super().of(value)


def _scale(suffix: str) -> Fraction:
    exact = _SCALES.get(suffix)
    return exact if exact is not None else Fraction(f"1{suffix}")
