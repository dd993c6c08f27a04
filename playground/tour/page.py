"""A page whose commands are run: blocks fenced as `console`, with a command after each `$` and then what it printed.

Nothing else of the page is touched, so that it is its own script. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

FENCE: Final = "```"
RECORDED: Final = "```console"
PROMPT: Final = "$ "
_HERE_DOCUMENT = re.compile(r"<<'?(\w+)'?")


class PageNotUnderstood(Exception):
    """A block has something before its first command, or an end is missing; the text says where."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command, in lines as they are typed, and the lines that it printed."""

    command: str
    printed: str

    def text(self) -> str:
        """Return it as it stands on the page."""
        return f"{PROMPT}{self.command}\n{self.printed}"


Part = str | Step
"""Text that is left alone, or a step."""


def parts(page: str) -> list[Part]:
    """The page in pieces; `joined` is the inverse. Raises PageNotUnderstood."""
    return list(_parts(iter(page.splitlines(keepends=True))))


def joined(pieces: list[Part]) -> str:
    """The page of its pieces."""
    return "".join(piece if isinstance(piece, str) else piece.text() for piece in pieces)


def steps(page: str) -> list[Step]:
    """All commands of a page, in order."""
    return [piece for piece in parts(page) if isinstance(piece, Step)]


def recorded(page: str, run: Callable[[str], str]) -> str:
    """The page with what `run` returns for each command instead of what it printed before."""
    return joined(
        [piece if isinstance(piece, str) else replace(piece, printed=run(piece.command)) for piece in parts(page)]
    )


def _parts(lines: Iterator[str]) -> Iterator[Part]:
    for line in lines:
        yield line
        if line.rstrip() == RECORDED:
            yield from _steps(lines)


def _steps(lines: Iterator[str]) -> Iterator[Part]:
    """Yield the steps up to the end of the block, which is included."""
    step: Step | None = None
    for line in lines:
        if line.startswith(PROMPT):
            if step is not None:
                yield step
            step = Step(_command(line.removeprefix(PROMPT), lines), "")
        elif line.rstrip() == FENCE:
            if step is not None:
                yield step
            yield line
            return
        elif step is None:
            raise PageNotUnderstood(f"a block of commands begins with {line.rstrip()!r}: {PROMPT!r} was expected")
        else:
            step = replace(step, printed=step.printed + line)
    raise PageNotUnderstood("the last block of commands has no end")


def _command(first: str, lines: Iterator[str]) -> str:
    """Return the command with its further lines: after a backslash, and up to the word that ends a document."""
    command = first
    document = _HERE_DOCUMENT.search(first)
    ending = f"\n{document[1]}\n" if document else ""
    while (document and not command.endswith(ending)) or command.endswith("\\\n"):
        line = next(lines, None)
        if line is None:
            raise PageNotUnderstood(f"the command {first.rstrip()!r} has no end")
        command += line
    return command.removesuffix("\n")
