"""Every page of the repository: its links lead somewhere, and the tests that it names exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.paths import ROOT

FOLDERS = ("docs", "charts", "tests", "examples", "gitops", "bench")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
LINK = re.compile(r"\[([^\]]*)\](?:\(([^)\s]+)\)|: +(\S+))")
HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
CODE = re.compile(r"^( *)```.*?^ *```$", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"`?(test_\w+)`?")


def links(page: Path) -> Iterator[tuple[str, str, str]]:
    """Return text, path and anchor of each link to a file of the repository."""
    for text, inline, reference in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = inline or reference
        if "://" not in target and not target.startswith("mailto:"):
            path, _, anchor = target.partition("#")
            yield text, path, anchor


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of the headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


each_page = pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    broken = [path for _, path, _ in links(page) if not (page.parent / path).exists()]

    assert broken == []


@each_page
def test_anchors_are_headings_of_the_page_they_lead_to(page: Path) -> None:
    found = [(page.parent / path if path else page, anchor) for _, path, anchor in links(page) if anchor]

    assert [anchor for target, anchor in found if target.suffix == ".md" and anchor not in anchors(target)] == []


@each_page
def test_tests_that_hold_a_promise_exist_where_the_page_says(page: Path) -> None:
    named = [(match[1], page.parent / path) for text, path, _ in links(page) if (match := TEST.fullmatch(text))]

    assert [name for name, file in named if f"def {name}(" not in file.read_text(encoding="utf-8")] == []
