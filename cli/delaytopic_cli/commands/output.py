"""The two ways of an answer: lines for people, or the gateway's own document."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import click
from pydantic import BaseModel

from delaytopic_process.command_line import NearChoice, echo, echo_document

OUTPUT = click.option(
    "-o",
    "--output",
    type=NearChoice(["text", "json", "yaml"]),
    help="Print lines for people, or the gateway's document. Default: text on a terminal, JSON elsewhere.",
)


def show(output: str | None, document: Any, lines: Iterable[str]) -> None:
    """Print a document, or the lines that say the same to people."""
    form = output or ("text" if sys.stdout.isatty() else "json")
    if form == "text":
        for line in lines:
            echo(line)
    else:
        plain = document.model_dump(mode="json", by_alias=True) if isinstance(document, BaseModel) else document
        echo_document(plain, form)
