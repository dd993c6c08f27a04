"""Benchmarks run without the tests: import-linter holds the packages to that, and benchmarks are none of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT


def test_benchmarks_import_nothing_of_the_tests() -> None:
    found = [(path, name) for path in (ROOT / "bench").rglob("*.py") for name in imported(path)]

    assert [(str(path), name) for path, name in found if name.split(".")[0] == "tests"] == []


def imported(path: Path) -> Iterator[str]:
    """Name the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
