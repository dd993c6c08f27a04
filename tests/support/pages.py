"""The code blocks of the documentation's pages, and the command lines in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.paths import ROOT

PAGES: Final = sorted(
    [ROOT / "README.md", *(page for folder in ("docs", "charts") for page in (ROOT / folder).rglob("*.md"))]
)
_BLOCK: Final = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_HERE_DOCUMENT: Final = re.compile(r"<<'?(\w+)'?\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_SHELL: Final = ("sh", "console", "")
_ENDS: Final = frozenset("|&;()<>")
"""Punctuation of which a run ends a command."""


class Block(NamedTuple):
    """A code block, without the indent of the list that it stands in."""

    language: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """Return the code blocks of a page, in order."""
    for indent, language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Block(language, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))


def yaml_texts(page: Path) -> Iterator[str]:
    """Return the YAML of a page: blocks of it, and what its shell commands apply."""
    for block in blocks(page):
        if block.language == "yaml":
            yield block.text
        elif block.language in _SHELL:
            yield from (text for _, text in _HERE_DOCUMENT.findall(block.text))


def commands(page: Path) -> Iterator[list[str]]:
    """Return each command in the page's shell blocks as words, without settings of its environment."""
    for block in blocks(page):
        if block.language in _SHELL:
            yield from (command for line in _lines(block) for command in _split(line))


def _lines(block: Block) -> Iterator[str]:
    """Return what is typed: of a console what stands after each prompt; else, of a shell's, all."""
    text = _HERE_DOCUMENT.sub("<<\n", block.text).replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith("$ "):
            yield line.removeprefix("$ ")
        elif block.language == "sh":
            yield line


def _split(line: str) -> Iterator[list[str]]:
    """Return the commands of a line: those of a pipe, of a list and of a substitution apart."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote that ends on another line: a program in another language
        return
    command: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= _ENDS:
            yield from [command] if command else []
            command = []
        elif command or "=" not in word:
            command.append(word)
