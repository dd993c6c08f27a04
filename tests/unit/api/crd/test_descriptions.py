"""Tests that what `kubectl explain` and the reference show comes from the models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.paths import ROOT

from delaytopic_api import DelayTopic, Duration, load_documents, resolve
from delaytopic_api.crd import KINDS, custom_resource_definition
from delaytopic_api.documents import Model
from delaytopic_api.documents.descriptions import described

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def models(of: type[Model] = Model) -> Iterator[type[Model]]:
    """Return those of the API: other packages may have been imported, too."""
    for model in of.__subclasses__():
        if model.__module__.startswith("delaytopic_api."):
            yield model
            yield from models(model)


def test_every_document_and_every_field_is_described() -> None:
    fields = [(model, name, field) for model in models() for name, field in described(model).model_fields.items()]

    assert [model for model in models() if not model.__doc__ and not model.__name__.startswith("_")] == []
    assert [(model, name) for model, name, field in fields if not field.description] == []


def described_fields(part: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield each field of spec or status of both kinds, by its path, and whether it is required."""
    for kind in KINDS:
        [version] = custom_resource_definition(kind)["spec"]["versions"]
        yield from fields_below(version["schema"]["openAPIV3Schema"]["properties"][part], f"{kind.name}.{part}")


def fields_below(schema: dict[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    for name, field in schema.get("properties", {}).items():
        yield f"{above}.{name}", field, name in schema.get("required", ())
        yield from fields_below(field.get("items", field), f"{above}.{name}")


@pytest.mark.parametrize("part", ["spec", "status"])
def test_each_description_is_a_sentence(part: str) -> None:
    texts = {path: field["description"] for path, field, _ in described_fields(part)}

    assert {path: text for path, text in texts.items() if not re.fullmatch("[A-Z`{].*[.]", text)} == {}
    assert {path: text for path, text in texts.items() if len(text.split()) < 3} == {}


def test_what_may_be_left_out_says_what_is_so_then() -> None:
    optional = {
        path: field["description"]
        for path, field, required in described_fields("spec")
        if not required and field.get("type") not in ("object", "array") and "default" not in field
    }

    says = "absent|default|only|none that|set none"
    assert {path: text for path, text in optional.items() if not re.search(says, text, re.IGNORECASE)} == {}


def test_what_has_a_free_form_has_an_example_or_a_default() -> None:
    free = {
        path: field["description"]
        for path, field, _ in described_fields("spec")
        if field.get("type") == "string" and "enum" not in field and "format" not in field
    }

    assert {path: text for path, text in free.items() if not re.search("such as|`|Default: ", text)} == {}


def test_the_first_screen_of_spec_tells_what_an_app_team_sets() -> None:
    [version] = custom_resource_definition(KINDS[0])["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    of_app_teams, _, of_the_platform = spec["description"].partition("platform's DelayClass")
    fields = {name: field["description"].startswith("The platform's.") for name, field in spec["properties"].items()}

    def named(text: str) -> set[str]:
        return {*re.findall("[A-Za-z]+", text)} & {*fields}

    assert named(of_app_teams) == {name for name, platform in fields.items() if not platform}
    assert named(of_the_platform) == {name for name, platform in fields.items() if platform}
    assert len(named(of_app_teams)) <= 12


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
