"""Parts of a command's output that differ in each run: moments, ages, lateness, what others do on the cluster. Pure.

Words stand for it, of one width, so that tables stay tables, and what is printed twice is equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_AGE: Final = r"(?:\d+[dhms])+"


def settled(printed: str) -> str:
    """Return what a command printed, without what is volatile; each line has an end. Settled text stays as it is."""
    return "".join(f"{_settled_line(line.rstrip())}\n" for line in printed.splitlines())


def _settled_line(line: str) -> str:
    for pattern, word in _RULES:
        line = re.sub(pattern, word, line)
    return line


def _to_the_right(word: str) -> Callable[[re.Match[str]], str]:
    """The word in a column that is filled from the left."""
    return lambda found: word.rjust(len(found[0]))


def _to_the_left(word: str) -> Callable[[re.Match[str]], str]:
    """The word in a column that is filled from the right."""
    return lambda found: word.ljust(len(found[0]))


_RULES: Final[tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]] = (
    (r"\d\d:\d\d:\d\d\.\d\d\d", "hh:mm:ss.mmm"),
    (r"\d\d:\d\d:\d\d\b", "hh:mm:ss"),
    (rf" {_AGE}$", " <age>"),  # the last column of kubectl's tables
    (rf"^  {_AGE} +(?=Normal|Warning)", "  <age>   "),  # events of a status page
    (rf" +{_AGE}(?= +\d+:\d+ )", _to_the_right("<age>")),  # how far ahead, of pending records
    (rf"\b{_AGE} ago\b", "<age> ago"),
    (r"(?<=True {7})\d+ +(?=true )", _to_the_left("<n>")),  # users of a class: a cluster may have others, too
    (r"  +\+?[\d.,]+ m?s\b", _to_the_right("<n> ms")),  # how long after its due time, of a watched record
)
