"""The API server goes and comes back, and others write what is the operator's: it ends as it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.control_plane import OwnControlPlane
from playground.kube.kube_client import APPLY_PATCH, Object
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_no_relays,
    await_pending,
    await_record,
    summary,
    with_pending,
)
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import running_platform

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RecordState
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

NAME = "reminders"


@pytest.fixture
def apart(
    own_control_plane: OwnControlPlane, kafka: KafkaAddress, redis: RedisAddress, tmp_path: Path
) -> Iterator[Platform]:
    """A platform on a control plane of its own, with a node of its own."""
    (tmp_path / "node").mkdir()
    with (
        LocalNode(own_control_plane, tmp_path / "node") as node,
        running_platform(own_control_plane, node, kafka, redis, tmp_path) as platform,
    ):
        yield platform


def test_an_api_server_that_restarts_during_passes_delays_them_and_nothing_else(
    apart: Platform, own_control_plane: OwnControlPlane, tmp_path: Path
) -> None:
    team = AppTeam.of(apart, NAME, tmp_path)
    apart.apply_topic(NAME)
    with_pending(apart, team, [12_000, 13_000, 14_000])
    for number in range(3):
        apart.apply_topic(f"t{number}")

    own_control_plane.restart_api_server()
    with own_control_plane.without_api_server():
        team.await_delivered(3)

    for number in range(3):
        apart.await_condition(f"t{number}", "Ready", seconds=90)
    team.send_due_in([25_000])
    await_pending(apart, NAME, 1)
    apart.delete_topic(NAME)
    await_record(apart, NAME, RecordState.DRAINING)
    own_control_plane.restart_api_server()
    apart.await_gone(NAME, seconds=90)
    assert summary(team.audited(10)) == all_arrived(4)
    for number in range(3):
        apart.delete_topic(f"t{number}")
    for number in range(3):
        apart.await_gone(f"t{number}", seconds=60)
    await_no_relays(apart)


def test_fields_that_somebody_else_takes_by_force_are_taken_back(platform: Platform) -> None:
    platform.start()
    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Ready", seconds=60)
    relays = relays_name(Key(platform.team, NAME))
    deployment = f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{relays}"
    namespace = f"/namespaces/{platform.namespace}"
    cases: list[tuple[str, Object, tuple[str, ...]]] = [
        (
            deployment,
            {"spec": {"minReadySeconds": 77}},
            ("spec", "minReadySeconds"),
        ),
        (
            deployment,
            {"spec": {"template": {"spec": {"automountServiceAccountToken": True}}}},
            ("spec", "template", "spec", "automountServiceAccountToken"),
        ),
        (
            f"/apis/policy/v1{namespace}/poddisruptionbudgets/{relays}",
            {"spec": {"maxUnavailable": 77}},
            ("spec", "maxUnavailable"),
        ),
    ]

    for path, change, field in cases:
        before = platform.client.get(path)
        of_kind = {"apiVersion": before["apiVersion"], "kind": before["kind"]}
        document = of_kind | {"metadata": {"name": relays}} | change
        query = {"fieldManager": "somebody", "force": "true"}
        taken = platform.client.request("PATCH", path, document, content_type=APPLY_PATCH, query=query)
        assert value_of(taken, field) != value_of(before, field)

        def is_back(found: Object | None, before: Object = before, field: tuple[str, ...] = field) -> bool:
            return found is not None and value_of(found, field) == value_of(before, field)

        await_object(platform.client, path, is_back, seconds=30)

    platform.await_condition(NAME, "Ready", seconds=60)


def value_of(found: Object, field: tuple[str, ...]) -> Any:
    value: Any = found
    for name in field:
        value = value.get(name)
    return value
