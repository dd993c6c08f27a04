"""The differences of a live object from the desired one, by Kubernetes' own ideas of what is the same."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

_LEFT_OUT: Final = ("apiVersion", "kind")
"""The API server does not say them again for each item of a list."""
_QUANTITIES: Final = frozenset({"limits", "requests", "sizeLimit", "storage", "divisor"})
"""Fields that are quantities, or maps of quantities."""
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
}
"""Lists whose items the API server knows by these fields. Others may add items of their own, which an apply cannot
take away: they are no drift. All other lists belong to one writer as a whole."""
_QUANTITY = re.compile(r"([+-]?[0-9.]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII)
_SCALES: Final = {
    **{f"{unit}i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
    **{unit: Fraction(1000) ** power for power, unit in enumerate(["n", "u", "m", "", "k", *"MGTPE"], -3)},
}


def drift(desired: Mapping[str, Any], live: Mapping[str, Any]) -> list[str]:
    """List the paths of fields that differ in `live` from `desired`; none: a write would change nothing.

    What `live` has beyond `desired` is no drift: defaults, and fields of other writers. (That a field is wanted no
    longer shows in the annotation that each document carries of itself: see `desired.hash`.) Null, empty text, an
    empty map and an empty list are the same as nothing; quantities are compared by value.
    """
    wanted = {field: value for field, value in desired.items() if field not in _LEFT_OUT}
    return list(_differences(wanted, live, "", ""))


def _differences(desired: Any, live: Any, path: str, field: str) -> Iterator[str]:
    if _is_nothing(desired):
        # A map without fields asks for none; a list without items, or no text, asks for there being none.
        if not isinstance(desired, Mapping) and not _is_nothing(live):
            yield path
    elif isinstance(desired, Mapping) and (live is None or isinstance(live, Mapping)):
        for name, value in desired.items():
            inside = field if field in _QUANTITIES else name
            yield from _differences(value, (live or {}).get(name), _joined(path, name), inside)
    elif isinstance(desired, list) and isinstance(live, list):
        yield from _list_differences(desired, live, path, field)
    elif not _is_same(desired, live, field):
        yield path


def _list_differences(desired: list[Any], live: list[Any], path: str, field: str) -> Iterator[str]:
    keys = _KEYS.get(field)
    if keys is not None and all(isinstance(each, Mapping) and _has_key(each, keys) for each in (*desired, *live)):
        live = _in_the_order_of(live, desired, keys)
    if len(desired) != len(live):
        yield path
        return
    for place, (wanted, there) in enumerate(zip(desired, live, strict=True)):
        yield from _differences(wanted, there, f"{path}[{place}]", "")


def _in_the_order_of(live: Sequence[Mapping[str, Any]], desired: Sequence[Any], keys: tuple[str, ...]) -> list[Any]:
    """List the live items that are wanted, in their live order."""
    wanted = {_key(each, keys) for each in desired}
    return [each for each in live if _key(each, keys) in wanted]


def _has_key(item: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return keys[0] in item and all(isinstance(value, Hashable) for value in _key(item, keys))


def _key(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(item.get(key) for key in keys)


def _is_same(desired: Any, live: Any, field: str) -> bool:
    if isinstance(desired, bool) or isinstance(live, bool):
        return desired is live
    if desired == live:
        return True
    value = _exact(desired) if field in _QUANTITIES else None
    return value is not None and value == _exact(live)


def _exact(quantity: Any) -> Fraction | None:
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    number, suffix = match[1], match[2] or ""
    try:
        return Fraction(number) * (_SCALES[suffix] if suffix in _SCALES else Fraction(f"1{suffix}"))
    except ValueError:
        return None


def _is_nothing(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _joined(path: str, name: str) -> str:
    if not re.fullmatch("[A-Za-z0-9_-]+", name, re.ASCII):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name
