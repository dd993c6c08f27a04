"""The health check expressions for Flux, run as Flux runs them, on the documents of the customization for Argo CD."""

from __future__ import annotations

from typing import Any

import cel
import pytest
import yaml
from tests.gitops.argo import FOLDER
from tests.support.paths import ROOT

EXPRESSIONS = yaml.safe_load((ROOT / "gitops/flux/health-check-exprs.yaml").read_text(encoding="utf-8"))
VERDICTS: dict[str, dict[str, str]] = yaml.safe_load(
    (ROOT / "tests/data/gitops/flux_verdicts.yaml").read_text(encoding="utf-8")
)


def _verdict(document: dict[str, Any]) -> str:
    """The order of Flux: generations first, then failed, then current; an expression that fails means waiting."""
    observed = document.get("status", {}).get("observedGeneration")
    if observed is not None and observed != document["metadata"]["generation"]:
        return "InProgress"
    (expressions,) = (each for each in EXPRESSIONS if each["kind"] == document["kind"])
    for field, verdict in (("failed", "Failed"), ("current", "Current")):
        try:
            if cel.evaluate(expressions[field], document):
                return verdict
        except RuntimeError:
            return "InProgress"
    return "InProgress"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in VERDICTS.items() for name in names])
def test_flux_waits_fails_or_goes_on_as_the_conditions_say(kind: str, name: str) -> None:
    document = yaml.safe_load((FOLDER / f"{kind}/testdata/{name}.yaml").read_text(encoding="utf-8"))

    verdict = _verdict(document)

    assert verdict == VERDICTS[kind][name]


def test_every_document_has_a_verdict() -> None:
    documents = {path.name: sorted(each.stem for each in (path / "testdata").iterdir()) for path in FOLDER.iterdir()}

    assert {kind: sorted(names) for kind, names in VERDICTS.items()} == documents


def test_the_expressions_are_for_what_teams_write_and_cover_each_field_that_flux_knows() -> None:
    of = [(each["apiVersion"], each["kind"]) for each in EXPRESSIONS]

    assert of == [("delaytopic.dev/v1beta1", "DelayTopic"), ("delaytopic.dev/v1beta1", "RecurringRecord")]
    assert [sorted(each) for each in EXPRESSIONS] == [["apiVersion", "current", "failed", "kind"]] * 2
