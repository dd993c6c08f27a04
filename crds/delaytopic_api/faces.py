"""Faces of packages whose names are imported when they are asked for (PEP 562): a name does not wait for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: `names` are those of each of its modules, separated by blanks."""
    places = {name: f"{package}.{module}" for module, text in names.items() for name in text.split()}

    def get(name: str) -> Any:
        place = places.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(place), name)
        setattr(sys.modules[package], name, value)
        return value

    return get
