"""The annotations of the chart for Artifact Hub."""

from __future__ import annotations

from typing import Any

import yaml
from charts.tools.places import CHART, text_of

_CHART = yaml.safe_load(text_of(CHART / "Chart.yaml"))


def _annotation(name: str) -> Any:
    return yaml.safe_load(_CHART["annotations"][f"artifacthub.io/{name}"])


def test_the_images_of_the_catalogue_are_those_of_the_values() -> None:
    values = yaml.safe_load(text_of(CHART / "values.yaml"))
    images = {"operator": values["image"], **{name: values[name]["image"] for name in ("relay", "gateway", "audit")}}

    assert {each["name"]: each["image"] for each in _annotation("images")} == {
        name: f"{image['repository']}:{_CHART['appVersion']}" for name, image in images.items()
    }


def test_the_kinds_of_the_catalogue_are_those_that_the_chart_defines() -> None:
    definitions = [yaml.safe_load(text_of(path)) for path in (CHART / "files/crds").iterdir()]

    assert {(each["name"], each["kind"], each["version"]) for each in _annotation("crds")} == {
        (each["metadata"]["name"], each["spec"]["names"]["kind"], version["name"])
        for each in definitions
        for version in each["spec"]["versions"]
    }


def test_changes_are_of_kinds_that_the_catalogue_knows() -> None:
    kinds = {"added", "changed", "deprecated", "removed", "fixed", "security"}

    assert {each["kind"] for each in _annotation("changes")} <= kinds
