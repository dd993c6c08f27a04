"""Whatever somebody writes is a document or refused with lines, never a stack trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import InvalidDocument, Problem, load_document, load_documents, load_relay_config
from delaytopic_api.documents import Model

FIELDS = sorted({field.alias or name for model in Model.__subclasses__() for name, field in model.model_fields.items()})
VALUES = ["1s", "0", "ByHeader", "RedisZset", "Native", "None", "a", "*", "k:9092", "redis://k:1", "DelayTopic", "5%"]

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(VALUES) | st.text(max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.integers() | st.booleans(), inner)
    ),
    max_leaves=20,
)
specs = st.dictionaries(st.sampled_from(FIELDS), anything, max_size=8)
kinds = st.sampled_from(["DelayTopic", "DelayClass", "RecurringRecord"])


def complete(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    minimal: dict[str, Any] = {
        "source": {"topic": "a"},
        "target": {"topic": "b"},
        "connection": {"bootstrapServers": "k:9092"},
    }
    if kind == "RecurringRecord":
        minimal = {"delayTopic": "a", "cron": "0 9 * * *"}
    return {"kind": kind, "apiVersion": "delaytopic.dev/v1beta1", "metadata": {"name": "x"}, "spec": minimal | fields}


def problems_of(load: Callable[[Any, str], object], content: Any) -> Sequence[Problem]:
    try:
        load(content, "here")
    except InvalidDocument as error:
        return error.problems
    return []


@given(kinds, specs)
def test_any_fields_make_a_document_or_lines_that_say_where(kind: str, fields: dict[str, Any]) -> None:
    problems = problems_of(load_document, complete(kind, fields))

    assert [problem for problem in problems if not str(problem).startswith("here: ")] == []


@given(anything, st.sampled_from([load_documents, load_relay_config]))
def test_anything_at_all_is_a_document_or_refused(content: Any, load: Callable[[str, str], object]) -> None:
    problems = problems_of(load, yaml.safe_dump(content))

    assert all(problem.message for problem in problems)


@given(st.text(), st.sampled_from([load_documents, load_relay_config]))
def test_any_text_is_documents_or_refused(text: str, load: Callable[[str, str], object]) -> None:
    problems = problems_of(load, text)

    assert all(problem.message for problem in problems)
