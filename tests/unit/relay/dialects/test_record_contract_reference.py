from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from delaytopic_api.records import CONTROL_HEADERS, DeadLetterReason

REFERENCE = Path(__file__).parents[4] / "docs" / "reference" / "record-contract.md"
TEXT = REFERENCE.read_text()
LINK = re.compile(r"\[(?P<test>test_\w+)\]\((?P<file>[^)]+\.py)\)")
LINKS = sorted({(link["file"], link["test"]) for link in LINK.finditer(TEXT)})
TABLES = [block.strip().splitlines() for block in re.findall(r"(?:^\|.*\n)+", TEXT, re.MULTILINE)]
ROWS = [row for head, _, *rows in TABLES for row in rows if not head.startswith("| client |")]
"""Of all tables but that of other clients, which no test here can hold to it."""


@pytest.mark.parametrize(("file", "test"), LINKS, ids=[test for _, test in LINKS])
def test_a_test_that_the_record_contract_names_exists(file: str, test: str) -> None:
    module = ast.parse((REFERENCE.parent / file).resolve().read_text())

    assert test in {statement.name for statement in module.body if isinstance(statement, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=range(len(ROWS)))
def test_every_row_of_the_record_contract_names_its_test(row: str) -> None:
    assert LINK.search(row.rstrip(" |").rpartition("|")[2])


def test_the_record_contract_names_every_control_header_and_reason() -> None:
    first_cells = {cell for row in ROWS for cell in re.findall(r"`([^`]+)`", row.split("|")[1])}

    assert first_cells >= CONTROL_HEADERS | {reason.value for reason in DeadLetterReason}
