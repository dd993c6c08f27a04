"""Plain scalars of YAML as Kubernetes takes them. Pure.

kubectl and the API server read YAML by sigs.k8s.io/yaml, which resolves as go-yaml's version 2 does, and turn it into
JSON: some of YAML 1.1 (`yes` is a boolean, `0o17` and `017` are numbers, so is `6063e25`), some not (`12:30` is text).
A table of verdicts of the original is in `tests/data/api/scalars_of_kubernetes.json`.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, TypeAlias

Scalar: TypeAlias = "str | int | float | bool | None"

TEXT: Final = "tag:yaml.org,2002:str"
INTEGER: Final = "tag:yaml.org,2002:int"
FLOAT: Final = "tag:yaml.org,2002:float"
BOOLEAN: Final = "tag:yaml.org,2002:bool"
NULL: Final = "tag:yaml.org,2002:null"

_WORDS: Final[dict[str, tuple[str, Scalar]]] = {
    spelled: (tag, value)
    for tag, value, words in (
        (BOOLEAN, True, ("y", "yes", "true", "on")),
        (BOOLEAN, False, ("n", "no", "false", "off")),
        (NULL, None, ("null", "~", "")),
    )
    for word in words
    for spelled in (word, word.capitalize(), word.upper())
}
_NOT_FINITE: Final = re.compile(r"\.(nan|NaN|NAN)|[-+]?\.(inf|Inf|INF)")
_WHOLE: Final = re.compile(
    r"(?P<sign>[-+]?)(0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*))"
)
_BINARY_OF_GO: Final = re.compile(r"0b(?P<binary>[-+][01]+)")
_FRACTION: Final = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_DECIMAL: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_INT_64: Final = range(-(1 << 63), 1 << 63)
_UINT_64: Final = range(1 << 64)


@lru_cache(maxsize=4096)
def resolved(text: str) -> tuple[str, Scalar]:
    """Return the tag of a plain scalar, and its value as JSON has it.

    The value of what is no number in JSON (`.nan`, `.inf`) is one of Python: Kubernetes refuses it.
    """
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if _NOT_FINITE.fullmatch(text):
        return FLOAT, float(text.replace(".", "", 1))
    if first == ".":
        return (_as_float(text.replace("_", "")) if _FRACTION.fullmatch(text) else None) or (TEXT, text)
    if first not in "+-0123456789":
        return TEXT, text
    plain = text.replace("_", "")
    return _as_whole(plain) or _as_float(plain) or (TEXT, text)


def as_json(number: int | float) -> int | float:
    """Return a number as Kubernetes has it after JSON, where 1.0 and 1 are one: whole if 64 bits hold it."""
    if isinstance(number, int):
        return number if number in _INT_64 else float(number)
    if not math.isfinite(number) or not number.is_integer():
        return number
    whole = int(Decimal(repr(number)))  # the shortest digits that mean it, which is what Go writes
    return whole if whole in _INT_64 else number


def _as_whole(plain: str) -> tuple[str, Scalar] | None:
    found = _WHOLE.fullmatch(plain) or _BINARY_OF_GO.fullmatch(plain)
    if found is None:
        return None
    kind, digits = next((kind, digits) for kind, digits in found.groupdict().items() if kind in _BASES and digits)
    sign = found.groupdict().get("sign", "")
    number = int(digits, _BASES[kind]) * (-1 if sign == "-" else 1)
    return (INTEGER, as_json(number)) if number in _INT_64 or (number in _UINT_64 and not sign) else None


def _as_float(plain: str) -> tuple[str, Scalar] | None:
    if not _DECIMAL.fullmatch(plain):
        return None
    number = float(plain)
    return (FLOAT, as_json(number)) if math.isfinite(number) else None
