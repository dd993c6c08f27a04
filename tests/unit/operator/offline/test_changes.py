"""Tests that the plan refuses each change that the API server refuses, by the same cases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.crd_cases import cases, document_of, merged

from delaytopic_operator.offline.changes import refused_change


@pytest.mark.parametrize("case", [pytest.param(case, id=case["case"]) for case in cases("crds/changed_objects.yaml")])
def test_a_change_is_refused_as_the_api_server_would(case: dict[str, Any]) -> None:
    before = document_of(case)

    refusal = refused_change(before | {"status": case.get("status")}, merged(before, case["change"]))

    assert [text for text in case.get("says", []) if text not in (refusal or "")] == []
    assert (refusal is not None) == ("says" in case)
