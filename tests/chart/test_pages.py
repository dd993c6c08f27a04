"""Values and words on the pages of documentation are those of chart and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from charts.tools.places import DOCS, ROOT, text_of
from tests.support.chart.helm import ChartHelm
from tests.support.pages import PAGES, yaml_texts

_WORD = re.compile(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`")
_CODE = ("operator", "crds/delaytopic_api", "process", "relay", "spark", "client")


@pytest.mark.integration
def test_values_on_the_pages_are_ones_that_the_chart_takes(helm: ChartHelm, tmp_path: Path) -> None:
    values = [text for page in PAGES for text in yaml_texts(page) if text.startswith("# values")]

    for number, text in enumerate(values):
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
        assert helm.template("--values", str(tmp_path / f"{number}.yaml"))

    assert len(values) == 6


def test_reasons_in_runbooks_and_how_to_pages_are_those_that_the_code_gives() -> None:
    code = "\n".join(text_of(path) for folder in _CODE for path in (ROOT / folder).rglob("*.py"))
    kubernetes = {"CrashLoopBackOff", "DeadlineExceeded"}
    kafka = {"CompleteAbort", "CompleteCommit", "LastTimestamp", "ProducerId", "TransactionTimeoutMs"}

    pages = [page for folder in ("runbooks", "how-to") for page in (DOCS / folder).glob("*.md")]
    words = {word for page in pages for word in _WORD.findall(text_of(page))}

    assert {word for word in words - kubernetes - kafka if word not in code} == set()
