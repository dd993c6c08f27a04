"""The documentation as a site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from docs.site.hooks import DOCS, with_links_outside
from tests.support.paths import ROOT

FOLDER = DOCS / "reference"
SHALLOW = re.compile(r"^ {1,3}(?:```|\|)", re.MULTILINE)
"""A block or a table that the site's Markdown does not take as a part of the list that it stands in."""


@pytest.mark.nightly  # each day links and blocks of code are looked at
def test_the_site_is_built_without_a_warning_and_has_every_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    run = subprocess.run(
        build, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert run.returncode == 0, run.stderr

    pages = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")} - {Path("adr/template")}
    built = {page.parent.relative_to(tmp_path) for page in tmp_path.rglob("index.html")}
    assert built == {Path() if page == Path("index") else page for page in pages}


def test_what_belongs_to_an_item_of_a_list_is_indented_by_four_so_that_the_list_goes_on() -> None:
    assert [str(page) for page in DOCS.rglob("*.md") if SHALLOW.search(page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("markdown", "linked", "named"),
    [
        ("[a](../../relay/x.py#y)", "[a](https://r/relay/x.py)", "a"),
        ("[`a`][b]\n\n[b]: ../../tests/x.py", "[`a`](https://r/tests/x.py)\n\n", "`a`\n\n"),
        ("[the runbooks](../runbooks)", "[the runbooks](https://r/docs/runbooks)", "the runbooks"),
    ],
    ids=["a link", "a reference", "a folder"],
)
def test_links_out_of_the_documentation_lead_to_the_repository_or_are_only_named(
    markdown: str, linked: str, named: str
) -> None:
    assert with_links_outside(markdown, FOLDER, "https://r") == linked
    assert with_links_outside(markdown, FOLDER, "") == named


@pytest.mark.parametrize(
    "markdown",
    [
        "[a](metrics.md#b)",
        "[a](#b)",
        "[a](https://kafka.apache.org/)",
        "[a][b]\n\n[b]: metrics.md",
        "```python\nx[a](../../relay/x.py)\n```",
    ],
    ids=["a page", "the same page", "another site", "a reference to a page", "code"],
)
def test_other_links_stay(markdown: str) -> None:
    assert with_links_outside(markdown, FOLDER, "https://r") == markdown
