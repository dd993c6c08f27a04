from __future__ import annotations

import json

import pytest
from bench.command import KEPT, PAGE
from bench.errors import BenchError
from bench.figures.page import page_with


def test_the_documentation_shows_the_run_that_is_kept() -> None:
    text = PAGE.read_text(encoding="utf-8")

    shown = page_with(text, json.loads(KEPT.read_text(encoding="utf-8")))

    assert shown == text


def test_a_page_without_a_place_for_results_is_refused() -> None:
    with pytest.raises(BenchError, match="no place for results"):
        page_with("# Words", json.loads(KEPT.read_text(encoding="utf-8")))
