"""Documents and values on the pages of documentation are ones that work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from charts.tools.places import DOCS, ROOT, text_of
from tests.chart.helm import ChartHelm

from delaytopic_api import load_document

PAGES = (DOCS / "how-to/install.md", DOCS / "how-to/gitops.md", DOCS / "explanation/security.md")
_BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
_CODE = ("operator", "crds/delaytopic_api", "relay", "spark")


def _blocks() -> list[Any]:
    return [yaml.safe_load(match[2]) for page in PAGES for match in _BLOCK.finditer(text_of(page))]


def test_documents_on_the_pages_are_ones_that_delaytopic_takes() -> None:
    documents = [each for each in _blocks() if str(each.get("apiVersion", "")).startswith("delaytopic.dev/")]

    names = [load_document(each).metadata.name for each in documents]

    assert names == ["order-reminders", "standard", "order-reminders"]


@pytest.mark.integration
def test_values_on_the_pages_are_ones_that_the_chart_takes(helm: ChartHelm, tmp_path: Path) -> None:
    values = [each for each in _blocks() if "apiVersion" not in each]

    for number, each in enumerate(values):
        (tmp_path / f"{number}.yaml").write_text(yaml.safe_dump(each))
        assert helm.template("--values", str(tmp_path / f"{number}.yaml"))

    assert len(values) == 2


def test_reasons_in_the_pages_for_whoever_is_woken_are_those_that_the_code_gives() -> None:
    code = "\n".join(text_of(path) for folder in _CODE for path in (ROOT / folder).rglob("*.py"))
    kubernetes = {"CrashLoopBackOff", "DeadlineExceeded"}

    words = {word for page in (DOCS / "runbooks").glob("*.md") for word in _WORD.findall(text_of(page))}

    assert {word for word in words - kubernetes if word not in code} == set()
