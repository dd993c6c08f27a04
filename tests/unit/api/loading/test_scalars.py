"""Scalars as they are read and written, against a table of what Kubernetes reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from tests.support.paths import DATA

from delaytopic_api import InvalidDocument
from delaytopic_api.loading import parse_yaml, write_yaml

KUBERNETES: dict[str, Any] = json.loads((DATA / "api/scalars_of_kubernetes.json").read_text(encoding="utf-8"))
SCALARS: dict[str, Any] = KUBERNETES["scalars"]
STRICTER = [
    "!!binary aGVsbG8=",
    "!foo bar",
    "!foo 5",
    "!!foo 5",
    "!!timestamp 2026-11-21",
    "!!set {a}",
    "!!omap [a: 1]",
]
"""Tags that nobody needs in a manifest: they are refused here."""
UNTOLD = ["! 5", '! "5"', "! '5'"]
"""PyYAML does not tell the tag `!`, which makes text of all, from none."""


def of(value: object) -> tuple[type, object]:
    return type(value), value


def read(text: str) -> object:
    [document] = parse_yaml(f"a: {text}\n")
    return document["a"]


def test_each_scalar_is_read_as_kubernetes_reads_it() -> None:
    read_otherwise = {
        text: (read(text), theirs)
        for text, theirs in SCALARS.items()
        if text not in (*STRICTER, *UNTOLD) and of(read(text)) != of(theirs)
    }

    assert read_otherwise == {}


@pytest.mark.parametrize("text", [*KUBERNETES["refused"], *STRICTER])
def test_what_kubernetes_refuses_and_some_tags_are_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match=r"^line [12], column \d+: cannot be read as YAML: "):
        read(text)


def test_a_text_in_quotes_is_text_whatever_it_looks_like() -> None:
    assert [text for text in SCALARS if read(json.dumps(text)) != text] == []


def test_each_text_that_is_written_is_read_again_as_this_text() -> None:
    texts = [text for text in SCALARS if "\n" not in text]

    written = write_yaml([texts])

    assert parse_yaml(written) == [texts]
    assert yaml.safe_load(written) == texts


def test_each_value_that_is_written_is_read_again_as_this_value() -> None:
    values = [value for value in SCALARS.values() if not isinstance(value, str)]

    assert [of(value) for value in parse_yaml(write_yaml([values]))[0]] == [of(value) for value in values]


def test_json_is_read_as_json_one_document_after_the_other() -> None:
    text = (
        '\ufeff{"a": 1.0, "b": [1e3, 1.5, true, null, "\\/6063e25", "\\ud83d\\ude00"]}\n {"c": 18446744073709551615}\n'
    )

    assert [list(map(of, document.values())) for document in parse_yaml(text)] == [
        [of(1), of([1_000, 1.5, True, None, "/6063e25", "😀"])],
        [of(1.8446744073709552e19)],
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": 1, "a": 2}', 'line 1, column 10: cannot be read as YAML: "a" is there twice'),
        ('{"a": {"b": 1,\n "b": 2}}', 'line 2, column 2: cannot be read as YAML: "b" is there twice'),
        ('{"a": .inf}', "line 1, column 7: cannot be read as YAML: .inf is no number in JSON"),
    ],
)
def test_what_is_wrong_in_json_is_told_with_its_place(text: str, line: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        parse_yaml(text)

    assert str(refused.value).startswith(line)


def test_yaml_in_braces_is_yaml() -> None:
    assert parse_yaml("{a: yes, b: [x, 'y']}") == [{"a": True, "b": ["x", "y"]}]


@pytest.mark.parametrize(("merged", "x"), [("x: 1, <<: *b", 2), ("<<: *b, x: 1", 1), ("<<: [{x: 3}, *b]", 3)])
def test_what_is_merged_takes_the_place_of_what_stands_before_it(merged: str, x: int) -> None:
    assert parse_yaml(f"b: &b {{x: 2}}\na: {{{merged}}}\n") == [{"b": {"x": 2}, "a": {"x": x}}]


def test_what_holds_itself_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="line 1, column 4: cannot be read as YAML: it holds an alias of itself"):
        parse_yaml("a: &a [*a]")
