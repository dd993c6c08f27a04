"""Edge: the documents of files and of the standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from delaytopic_api.errors import ApiError
from delaytopic_api.loading import parse_yaml
from delaytopic_cli.plan.errors import NoPlan
from delaytopic_operator.offline import Documents, sorted_out

STANDARD_INPUT = "-"


def read_files(names: Iterable[str], namespace: str) -> Documents:
    """Return the documents of all files; `-` is standard input. `namespace`: of objects that name none.

    Raises `ProgramError`s with a line for each thing to change.
    """
    contents: list[tuple[str, object]] = []
    for name in names:
        try:
            contents += [(name, content) for content in parse_yaml(_text(name), name)]
        except ApiError as error:
            raise NoPlan(str(error)) from error
    return sorted_out(contents, namespace)


def _text(name: str) -> str:
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.read()
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise NoPlan(f"{name} cannot be read: {error}") from error
