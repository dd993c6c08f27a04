"""The generated files: up to date with the models, complete, and without anything that comes by surprise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.support.paths import ROOT

from delaytopic_api.crd import KINDS, custom_resource_definition
from delaytopic_api.crd.__main__ import file_name, file_text
from delaytopic_api.crd.kinds import Kind
from delaytopic_api.documents import API_VERSION, GROUP, ApiVersion

CRDS = ROOT / "crds"
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def parts(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field below a schema, items of lists included."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from parts(field, f"{path}.{name}")
    if "items" in schema:
        yield f"{path}[]", schema["items"]
        yield from parts(schema["items"], f"{path}[]")


def fields(kind: Kind) -> dict[str, dict[str, Any]]:
    """Of spec and status."""
    [version] = custom_resource_definition(kind)["spec"]["versions"]
    known = dict(parts(version["schema"]["openAPIV3Schema"]))
    return {path: field for path, field in known.items() if path.startswith((".spec", ".status"))}


@each_kind
def test_the_file_is_what_the_models_say(kind: Kind) -> None:
    written = (CRDS / file_name(kind)).read_text(encoding="utf-8")

    assert written == file_text(kind), "run `make generate`"


@each_kind
def test_a_file_has_no_anchors_that_other_tools_stumble_over(kind: Kind) -> None:
    text = file_text(kind)

    assert "&id" not in text
    assert yaml.safe_load(text) == custom_resource_definition(kind)


@each_kind
def test_every_field_is_described(kind: Kind) -> None:
    undescribed = [path for path, field in fields(kind).items() if not field.get("description") and "[]" not in path]

    assert undescribed == []


@each_kind
def test_every_field_has_one_type_and_none_may_be_null(kind: Kind) -> None:
    typed = {path: field.get("type") or "x-kubernetes-int-or-string" in field for path, field in fields(kind).items()}

    assert [path for path, type in typed.items() if not type] == []
    assert [path for path, field in fields(kind).items() if "nullable" in field] == []


def test_only_the_number_of_relays_and_what_tells_certificates_apart_are_written_into_objects() -> None:
    stored = {path: field["default"] for kind in KINDS for path, field in fields(kind).items() if "default" in field}

    assert stored == {
        ".spec.relay": {},
        ".spec.relay.replicas": 1,
        ".spec.backend.redis.tls.trustedCertificates[].certificate": "ca.crt",
        ".spec.connection.authentication.oauth.trustedCertificate.certificate": "ca.crt",
        ".spec.connection.tls.trustedCertificates[].certificate": "ca.crt",
    }


@each_kind
def test_every_list_says_how_server_side_apply_merges_it(kind: Kind) -> None:
    lists = {path: field for path, field in fields(kind).items() if field.get("type") == "array"}

    assert {path for path, field in lists.items() if "x-kubernetes-list-type" not in field} == set()


def test_other_defaults_are_described() -> None:
    described = fields(KINDS[0])[".spec.target.partitioning"]["description"]

    assert described.endswith("RoundRobin: each in turn. Default: ByKey.")


@each_kind
def test_every_version_that_is_read_is_served_and_the_one_that_is_written_is_stored(kind: Kind) -> None:
    versions = custom_resource_definition(kind)["spec"]["versions"]

    assert [f"{GROUP}/{each['name']}" for each in versions if each["served"]] == [*ApiVersion]
    assert [f"{GROUP}/{each['name']}" for each in versions if each["storage"]] == [API_VERSION]
