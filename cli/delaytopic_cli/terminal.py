"""Edge: print text that others wrote: nothing in it reaches the terminal as a command."""

from __future__ import annotations

import json
from typing import Any

import click


def echo(text: str = "", *, err: bool = False) -> None:
    """Print one line; a line break within it is escaped, as it would forge another one."""
    click.echo(printable(text), err=err)


def echo_lines(text: str, *, err: bool = False) -> None:
    """Print text of several lines."""
    for line in text.split("\n"):
        echo(line, err=err)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Print JSON, readable where it can be."""
    echo_lines(json.dumps(value, ensure_ascii=False, indent=indent))


def printable(text: str) -> str:
    r"""Return the text with everything that is not printable as JSON has it, such as `\u001b` for the escape character.

    Escape sequences of terminals begin with control characters, C1 ones among them; marks of writing direction show a
    text other than it is.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
