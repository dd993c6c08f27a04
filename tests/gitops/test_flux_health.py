"""The health check expressions for Flux, run as Flux runs them, on the documents of the customization for Argo CD."""

from __future__ import annotations

from typing import Any

import cel
import pytest
import yaml
from tests.gitops.argo import FOLDER
from tests.support.paths import ROOT

EXPRESSIONS = yaml.safe_load((ROOT / "gitops/flux/health-check-exprs.yaml").read_text(encoding="utf-8"))
VERDICTS: dict[str, str] = yaml.safe_load((ROOT / "tests/data/gitops/flux_verdicts.yaml").read_text(encoding="utf-8"))


def _verdict(document: dict[str, Any]) -> str:
    """The order of Flux: generations first, then failed, then current; an expression that fails means waiting."""
    observed = document.get("status", {}).get("observedGeneration")
    if observed is not None and observed != document["metadata"]["generation"]:
        return "InProgress"
    (expressions,) = EXPRESSIONS
    for field, verdict in (("failed", "Failed"), ("current", "Current")):
        try:
            if cel.evaluate(expressions[field], document):
                return verdict
        except RuntimeError:
            return "InProgress"
    return "InProgress"


@pytest.mark.parametrize("name", VERDICTS)
def test_flux_waits_fails_or_goes_on_as_the_conditions_say(name: str) -> None:
    document = yaml.safe_load((FOLDER / f"testdata/{name}.yaml").read_text(encoding="utf-8"))

    verdict = _verdict(document)

    assert verdict == VERDICTS[name]


def test_every_document_has_a_verdict() -> None:
    assert sorted(VERDICTS) == sorted(path.stem for path in (FOLDER / "testdata").iterdir())


def test_the_expressions_are_for_delay_topics_and_cover_each_field_that_flux_knows() -> None:
    assert [(each["apiVersion"], each["kind"]) for each in EXPRESSIONS] == [("delaytopic.dev/v1beta1", "DelayTopic")]
    assert sorted(EXPRESSIONS[0]) == ["apiVersion", "current", "failed", "kind"]
