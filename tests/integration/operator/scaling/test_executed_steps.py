"""A scaling step counts once the Deployment was written: two DelayTopics, a real API server."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any, TypeVar

import pytest
from playground.kube.control_plane import ControlPlane
from structlog.testing import capture_logs
from tests.cluster.fixtures import MakeNamespace
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.crashing import CrashPoint, is_write
from tests.support.operator.lives import Life, World

from delaytopic_operator.errors import ObjectRejected
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources import relays_name

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

T = TypeVar("T")
FIRST, SECOND = "first", "second"
MINUTE_MS = 61_000


class Refusing(CrashPoint):
    """An API server that refuses to write Deployments while `refuses`."""

    refuses = False

    def call(self, what: str, do: Callable[[], T]) -> T:
        if self.refuses and is_write(what) and " deployments " in what:
            raise ObjectRejected("no more pods for this team")
        return super().call(what, do)


@pytest.fixture
def world(
    control_plane: ControlPlane, make_namespace: MakeNamespace, kafka: KafkaAddress, redis: RedisAddress
) -> Iterator[World]:
    platform, team = make_namespace("platform"), make_namespace("shop")
    made = World(control_plane, kafka.bootstrap_servers, redis.url, platform, team, f"steps-{secrets.token_hex(3)}")
    made.apply_class()
    yield made
    control_plane.kubectl("delete", "delayclass", made.class_name)
    made.close()


@pytest.fixture
def point() -> Refusing:
    return Refusing()


@pytest.fixture
def life(world: World, point: Refusing) -> Iterator[Life]:
    """Both DelayTopics have one relay, and a minute has gone by since."""
    life = Life(world, point)
    for name in (FIRST, SECOND):
        ask(world, name, relays=1)
        life.live(name)
    world.now_ms += MINUTE_MS
    yield life
    life.end()


def ask(world: World, name: str, *, relays: int, annotations: dict[str, str] | None = None) -> None:
    world.apply(name, annotations, autoscaling={"mode": "Fixed"}, relay={"replicas": relays})


def relays(world: World, name: str) -> int:
    path = f"/apis/apps/v1/namespaces/{world.platform}/deployments/{relays_name(Key(world.team, name))}"
    count: int = world.plane.client.get(path)["spec"]["replicas"]
    return count


def told(world: World, logs: Sequence[MutableMapping[str, Any]]) -> list[str]:
    """The DelayTopics whose steps were told, by the operator's log of its events."""
    return [each["delaytopic"].removeprefix(f"{world.team}/") for each in logs if each.get("reason") == "RelayScaled"]


def test_a_dry_run_takes_no_step_and_tells_none(world: World, life: Life) -> None:
    ask(world, FIRST, relays=2, annotations={"delaytopic.dev/dry-run": "true"})
    ask(world, SECOND, relays=2)

    with capture_logs() as logs:
        life.pass_over(FIRST)
        life.pass_over(SECOND)

    assert (relays(world, FIRST), relays(world, SECOND)) == (1, 2)
    assert told(world, logs) == [SECOND]


def test_a_refused_write_is_no_step_and_is_not_told(world: World, life: Life, point: Refusing) -> None:
    ask(world, FIRST, relays=2)
    ask(world, SECOND, relays=2)

    with capture_logs() as logs:
        point.refuses = True
        went_well = life.pass_over(FIRST)
        point.refuses = False
        life.pass_over(SECOND)

    assert (went_well, relays(world, FIRST), relays(world, SECOND)) == (False, 1, 2)
    assert told(world, logs) == [SECOND]
