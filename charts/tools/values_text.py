"""The values of the chart as their file describes them: each `# --` line belongs to the key below it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

_DESCRIPTION = re.compile(r"\s*# -- (.+)")
_KEY = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9]*):")
_INDENT = 2


class Value(NamedTuple):
    """One value: `path` with dots, as for `--set`."""

    path: str
    description: str
    default: Any


def described_values(text: str) -> list[Value]:
    """All values that have a description, in the order of the file."""
    document = yaml.safe_load(text)
    return [Value(path, description, _at(document, path)) for path, description in _descriptions(text)]


def paths_without_description(text: str) -> list[str]:
    """Leaves of the file that no description, of themselves or of what they are part of, covers."""
    described = {value.path for value in described_values(text)}
    return [path for path in _leaves(yaml.safe_load(text), ()) if not _covered(path, described)]


def _descriptions(text: str) -> Iterator[tuple[str, str]]:
    parents: list[str] = []
    waiting = ""
    for line in text.splitlines():
        if comment := _DESCRIPTION.fullmatch(line):
            waiting = comment[1]
        elif key := _KEY.match(line):
            parents[len(key[1]) // _INDENT :] = [key[2]]
            if waiting:
                yield ".".join(parents), waiting
            waiting = ""


def _at(document: Any, path: str) -> Any:
    for part in path.split("."):
        document = document[part]
    return document


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, str(key)))
    else:
        yield ".".join(path)


def _covered(path: str, described: set[str]) -> bool:
    parts = path.split(".")
    return any(".".join(parts[:count]) in described for count in range(1, len(parts) + 1))
