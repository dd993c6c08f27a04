"""Objects with one fault each, made at random of objects that are accepted; the same seed makes the same one."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

Place = tuple[str | int, ...]

ODD_TEXTS: Final = (
    *("", " ", ".", "..", "a b", "A", "é", "a" * 64, "a" * 250, "__a", "-1", "0", "1", "1.5", "1e3", "true", "null"),
    *("0s", "1ms", "9ms", "10ms", "1s", "90s", "59m60s", "1h", "24h1ms", "720h", "87600h", "87600h1ms", "30d", "1H"),
    *("5%", "9.9%", "10%", "95%", "100%", "100.1%", "1Mi", "1048575", "64Gi", "-1Mi", "redis://r:6379", "rediss://r"),
    *("Native", "Cesium", "Scheduler", "Redelivery", "RedisZset", "KafkaBuckets", "Fixed", "Disabled", "None", "Day"),
    *("compact", "delete", "2026-11-21T02:00:00Z", "Europe/Berlin", "shop.*", "*", "{namespace}.*", "kafka:9092"),
)
ODD_VALUES: Final[tuple[Any, ...]] = (
    -1,
    0,
    1,
    2,
    1_000,
    10_001,
    2**31,
    2**63,
    1.5,
    True,
    False,
    [],
    {},
    [""],
    {"a": 1},
)


class Faulty(NamedTuple):
    """An object, and what was done to an accepted one."""

    document: dict[str, Any]
    fault: str


def faulty(seed: int, accepted: Sequence[dict[str, Any]]) -> Faulty:
    """Return one of the accepted objects with one fault; some of these are none after all."""
    rng = random.Random(seed)
    kind = rng.choice(sorted({each["kind"] for each in accepted}))
    alike = [each for each in accepted if each["kind"] == kind]
    document = copy.deepcopy(rng.choice(alike))
    places = [place for place in _places(document["spec"]) if place]
    place = rng.choice(places)
    spec = document["spec"]
    match rng.randrange(6):
        case 0 if isinstance(_at(spec, place), dict):
            _at(spec, place)["unheard"] = 1
            fault = "a field that is unknown"
        case 1:
            del _at(spec, place[:-1])[place[-1]]
            fault = "a field that is missing"
        case 2 if isinstance(_at(spec, place), dict) and _at(spec, place):
            fields = _at(spec, place)
            name, odd = rng.choice([*fields]), rng.choice(ODD_TEXTS)
            fields[odd] = fields.pop(name)
            fault = f"{odd!r:.40} in place of the name {name}"
        case 3 | 4:
            other = rng.choice(alike)["spec"]
            place = rng.choice([each for each in _places(other) if each and all(isinstance(key, str) for key in each)])
            _graft(spec, other, place)
            fault = "a field of another object"
        case _:
            odd = rng.choice(_odd(_at(spec, place), rng))
            _at(spec, place[:-1])[place[-1]] = copy.deepcopy(odd)
            fault = f"{odd!r:.40}"
    return Faulty(document, f"{'.'.join(map(str, place))}: {fault}")


def _odd(value: Any, rng: random.Random) -> Sequence[Any]:
    """Return what may stand in place of a value: mostly of its type, or just beside it."""
    if isinstance(value, str) and rng.random() < 0.8:
        return ODD_TEXTS
    if isinstance(value, int) and rng.random() < 0.5:
        return value - 1, value + 1
    return ODD_VALUES


def _places(node: Any, place: Place = ()) -> Iterator[Place]:
    yield place
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from _places(value, (*place, key))


def _at(node: Any, place: Place) -> Any:
    for key in place:
        node = node[key]
    return node


def _graft(spec: dict[str, Any], other: dict[str, Any], place: Place) -> None:
    """Set one field as another object has it, within what this one has."""
    depth = 1
    while depth < len(place) and isinstance(inner := _at(spec, place[: depth - 1]).get(place[depth - 1]), dict):
        depth += 1
        if not inner and depth > len(place):
            break
    _at(spec, place[: depth - 1])[place[depth - 1]] = copy.deepcopy(_at(other, place[:depth]))
