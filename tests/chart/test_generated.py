"""Generated files are up to date."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from charts.tools.generated import generated_files
from charts.tools.kustomize import kustomize_base
from charts.tools.olm_bundle import BUNDLE, olm_bundle
from charts.tools.pages import with_part
from charts.tools.places import CHART, CRDS, GITOPS, ROOT, text_of
from charts.tools.values_schema import TYPES
from charts.tools.values_text import Value, described_values, paths_without_description
from tests.support.chart.helm import ChartHelm

GENERATED = generated_files()
HINT = "run: make generate"


@pytest.mark.parametrize("path", sorted(GENERATED), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert text_of(path) == GENERATED[path], HINT


def test_the_chart_holds_every_definition_and_no_other_file() -> None:
    assert [path.name for path in sorted((CHART / "files/crds").iterdir())] == [
        path.name for path in sorted(CRDS.glob("delaytopic.dev_*.yaml"))
    ]


@pytest.mark.integration
@pytest.mark.parametrize("made", [kustomize_base, olm_bundle], ids=lambda made: made.__name__)
def test_what_follows_from_the_rendered_chart_is_up_to_date(
    helm: ChartHelm, made: Callable[[Path], dict[Path, str]]
) -> None:
    files = made(helm.program)

    assert {path: text_of(path) for path in files} == files, HINT


@pytest.mark.integration
def test_the_bundle_of_olm_has_no_file_that_is_left_over(helm: ChartHelm) -> None:
    assert {path for path in BUNDLE.rglob("*") if path.is_file()} <= olm_bundle(helm.program).keys()


def test_every_value_is_described() -> None:
    assert paths_without_description(text_of(CHART / "values.yaml")) == []


def test_every_value_has_a_type_and_no_type_is_left_over() -> None:
    values = {value.path for value in described_values(text_of(CHART / "values.yaml"))}

    assert values - {"operator"} == set(TYPES)


def test_the_description_of_a_value_is_the_line_above_it() -> None:
    text = "a:\n  # -- What b is.\n  b: [1]\n  c: {}\n# -- What d is.\nd: 2\n"

    assert described_values(text) == [Value("a.b", "What b is.", [1]), Value("d", "What d is.", 2)]
    assert paths_without_description(text) == ["a.c"]


def test_a_page_without_its_marks_is_an_error() -> None:
    with pytest.raises(KeyError, match="values"):
        with_part("no marks here", "values", "| a |\n")


def test_the_configuration_of_argo_cd_holds_the_scripts_as_they_are() -> None:
    data = yaml.safe_load(text_of(GITOPS / "argocd/argocd-cm.yaml"))["data"]
    customizations = GITOPS / "argocd/resource_customizations/delaytopic.dev"
    folder = customizations / "DelayTopic"
    actions = yaml.safe_load(data["resource.customizations.actions.delaytopic.dev_DelayTopic"])

    health = {path.name: text_of(path / "health.lua") for path in customizations.iterdir()}
    prefix = "resource.customizations.health.delaytopic.dev_"
    assert {name.removeprefix(prefix): text for name, text in data.items() if name.startswith(prefix)} == health
    assert actions["discovery.lua"] == text_of(folder / "actions/discovery.lua")
    assert {each["name"]: each["action.lua"] for each in actions["definitions"]} == {
        name: text_of(folder / f"actions/{name}/action.lua") for name in ("pause", "resume", "reconcile")
    }
