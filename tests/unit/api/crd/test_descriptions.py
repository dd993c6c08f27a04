"""Tests that what `kubectl explain` and the reference show comes from the models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.paths import ROOT

from delaytopic_api import DelayTopic, Duration, load_documents, resolve
from delaytopic_api.documents import Model

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def models(of: type[Model] = Model) -> Iterator[type[Model]]:
    """Return those of the API: other packages may have been imported, too."""
    for model in of.__subclasses__():
        if model.__module__.startswith("delaytopic_api."):
            yield model
            yield from models(model)


def test_every_document_and_every_field_is_described() -> None:
    fields = [(model, name, field) for model in models() for name, field in model.model_fields.items()]

    assert [model for model in models() if not model.__doc__ and not model.__name__.startswith("_")] == []
    assert [(model, name) for model, name, field in fields if not field.description] == []


def test_text_types_say_in_the_schema_how_they_are_written() -> None:
    schema = DelayTopic.model_json_schema()["$defs"]["ScheduleSpec"]["properties"]["maxDelay"]["anyOf"][0]

    assert schema.items() >= Duration.schema.items()


def test_names_say_in_the_schema_what_they_match() -> None:
    schema = DelayTopic.model_json_schema()["$defs"]["NamespacedMetadata"]["properties"]["name"]

    assert schema["pattern"] == "^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$"
    assert schema["maxLength"] == 40


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_documents_that_resolve(example: Path) -> None:
    documents = load_documents(example.read_text(encoding="utf-8"))

    assert [resolve(each).name if isinstance(each, DelayTopic) else each.metadata.name for each in documents] == [
        each.metadata.name for each in documents
    ]
    assert len(documents) == 1
