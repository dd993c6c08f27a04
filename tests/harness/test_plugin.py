from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.report import ended_early

from delaytopic_local.servers.process import ManagedProcess


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


def test_a_shared_server_that_ended_is_told_with_its_code_and_the_end_of_its_log(tmp_path: Path) -> None:
    programs = {"gone": "print('no room'); exit(3)", "there": "import time; time.sleep(60)"}
    servers = [ManagedProcess(n, [sys.executable, "-c", p], log_file=tmp_path / n) for n, p in programs.items()]
    try:
        for each in servers:
            each.start()
        assert servers[0].wait(timeout_seconds=20) == 3

        [told] = ended_early(servers, tmp_path)
    finally:
        servers[1].kill()

    assert told.startswith("gone ended with 3 ")
    assert told.endswith("the end of its log:\nno room")
    (others := tmp_path / "others").mkdir()
    assert ended_early(servers, others) == []
