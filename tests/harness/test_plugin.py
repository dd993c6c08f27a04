from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest


class Parses:
    """Garbage that parses when it is collected, as a finalizer does whose traceback is written."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        ast.parse("a + b")


@pytest.fixture
def eager_collector() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("eager_collector")
def test_a_file_is_parsed_while_garbage_waits_that_parses_too() -> None:
    source = Path(__file__).read_text(encoding="utf-8")

    for _ in range(20):
        garbage = [Parses() for _ in range(20)]
        del garbage
        assert isinstance(ast.parse(source), ast.Module)
