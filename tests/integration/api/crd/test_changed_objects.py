"""Changes of an object that exists: some are refused, all others are accepted."""

from __future__ import annotations

from typing import Any

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import RequestRefused
from tests.harness.names import unique
from tests.support.crd_cases import cases, document_of, merged

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

CASES = cases("crds/changed_objects.yaml")


def given(case: dict[str, Any]) -> Any:
    return pytest.param(case, id=case["case"])


@pytest.fixture(scope="module")
def path(control_plane: ControlPlane) -> str:
    """The API of a namespace of these tests."""
    namespace = unique("changed")
    control_plane.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    return f"/apis/delaytopic.dev/v1beta1/namespaces/{namespace}"


def changed(control_plane: ControlPlane, path: str, case: dict[str, Any]) -> None:
    name, path = unique("reminders"), f"{path}/{case.get('kind', 'DelayTopic').lower()}s"
    stored = control_plane.client.create(path, merged(document_of(case), {"metadata": {"name": name}}))
    if "status" in case:
        stored = control_plane.client.merge(f"{path}/{name}/status", {"status": case["status"]})
    control_plane.client.replace(f"{path}/{name}", merged(stored, case["change"]), dryRun="All")


@pytest.mark.parametrize("case", [given(case) for case in CASES if "says" in case])
def test_a_change_that_pending_records_would_suffer_from_is_refused(
    control_plane: ControlPlane, path: str, case: dict[str, Any]
) -> None:
    with pytest.raises(RequestRefused) as refused:
        changed(control_plane, path, case)

    assert [text for text in case["says"] if text not in refused.value.message] == [], refused.value.message


@pytest.mark.parametrize("case", [given(case) for case in CASES if "says" not in case])
def test_other_changes_are_accepted(control_plane: ControlPlane, path: str, case: dict[str, Any]) -> None:
    changed(control_plane, path, case)
