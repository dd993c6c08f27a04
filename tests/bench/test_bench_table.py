from __future__ import annotations

from bench.figures.table import Table

TABLE = Table(("case", "ratio"), [("null relay", "1.00"), ("ours", "0.7")])


def test_a_terminal_gets_aligned_columns() -> None:
    found = TABLE.text()

    assert found == "\n".join(
        [
            "case        ratio",
            "----------  -----",
            "null relay   1.00",
            "ours          0.7",
        ]
    )


def test_a_document_gets_markdown() -> None:
    found = TABLE.markdown()

    assert found == "\n".join(
        [
            "| case | ratio |",
            "| --- | ---: |",
            "| null relay | 1.00 |",
            "| ours | 0.7 |",
        ]
    )
