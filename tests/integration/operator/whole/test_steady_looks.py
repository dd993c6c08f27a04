"""Changes that a look at the numbers alone has to notice: nothing else is reconciled for hours here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

SELDOM = {"resync": "1h", "statusInterval": "1h"}
NAME = "steady"


@pytest.fixture(scope="module")
def steady(run_platform: RunPlatform) -> Iterator[Platform]:
    """A platform with a DelayTopic that is ready, whose class is for namespaces with a label."""
    with run_platform("steady", labels={"team": "checkout"}, **SELDOM) as platform:
        platform.apply_class(access={"namespaceSelector": {"matchLabels": {"team": "checkout"}}})
        platform.apply_topic(NAME)
        platform.await_condition(NAME, "Ready", seconds=90)
        yield platform


def label(platform: Platform, team: str | None) -> None:
    platform.client.merge(f"/api/v1/namespaces/{platform.team}", {"metadata": {"labels": {"team": team}}})


def test_a_label_that_its_namespace_loses_is_noticed(steady: Platform) -> None:
    label(steady, None)
    steady.await_condition(NAME, "PolicyAccepted", "False", seconds=60)
    label(steady, "checkout")

    assert steady.await_condition(NAME, "Ready", seconds=60)["status"]["observedGeneration"] == 1


def test_a_deployment_that_somebody_changes_is_set_right(steady: Platform) -> None:
    path = f"/apis/apps/v1/namespaces/{steady.namespace}/deployments/{relays_name(Key(steady.team, NAME))}"
    before: dict[str, Any] = steady.client.get(path)["spec"]["template"]["spec"]

    grace = before["terminationGracePeriodSeconds"]
    steady.client.merge(path, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": grace + 1}}}})

    def is_set_right(found: Object | None) -> bool:
        return bool(found and found["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == grace)

    await_object(steady.client, path, is_set_right, seconds=60)
