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


def _as_wide(word: str, justify: Callable[[str, int], str]) -> Callable[[re.Match[str]], str]:
    """The word in a column, whose width stays."""
    return lambda found: justify(word, len(found[0]))


_RULES: Final[tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...]] = (
    (r"\d\d:\d\d:\d\d\.\d\d\d", "hh:mm:ss.mmm"),
    (r"\d\d:\d\d:\d\d\b", "hh:mm:ss"),
    (rf" {_AGE}$", " <age>"),  # the last column of kubectl's tables
    (rf"^  {_AGE} +(?=Normal|Warning)", "  <age>   "),  # events of a status page
    (rf" +{_AGE}(?= +\d+:\d+ )", _as_wide("<age>", str.rjust)),  # how far ahead, of pending records
    (rf"\b{_AGE} ago\b", "<age> ago"),
    (r"(?<=True {7})\d+ +(?=true )", _as_wide("<n>", str.ljust)),  # users of a class: a cluster may have others, too
    (r"  +\+?[\d.,]+ m?s\b", _as_wide("<n> ms", str.rjust)),  # how long after its due time, of a watched record
)
