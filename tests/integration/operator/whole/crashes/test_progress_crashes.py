"""Progress that Kafka forgot is restored wherever an operator is killed that resumes a backlog."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from itertools import count

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from playground.kube.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.crashing import CrashPoint
from tests.support.operator.lives import PARTITIONS, Life, World, dies
from tests.support.relay.process import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

RECORDS = 3
DELIVERED = (1, "1;1;7;0;")
NOTHING = (-1001, "")
FEWEST_CALLS = 5


@pytest.fixture
def world(
    control_plane: ControlPlane, make_namespace: MakeNamespace, kafka: KafkaAddress, redis: RedisAddress
) -> Iterator[World]:
    platform, team = make_namespace("platform"), make_namespace("shop")
    made = World(control_plane, kafka.bootstrap_servers, redis.url, platform, team, f"late-{secrets.token_hex(3)}")
    made.apply_class()
    yield made
    control_plane.kubectl("delete", "delayclass", made.class_name)
    made.close()


def test_forgotten_progress_is_restored_wherever_an_operator_is_killed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    deaths: list[tuple[str | None, list[tuple[int, str | None]]]] = []
    for number in count(1):
        name = f"late-{secrets.token_hex(3)}"
        forgotten(world, name)
        died = dies(Life(world, CrashPoint(number)), name)
        assert dies(Life(world), name) is None
        deaths.append((died, progress(world, name)))
        world.end_of(name)
        if died is None:
            break

    with capsys.disabled():
        print(f"\nforgotten: killed before each of {len(deaths) - 1} calls")
    assert len(deaths) > FEWEST_CALLS
    for died, committed in deaths:
        assert committed == [DELIVERED, NOTHING], died


def forgotten(world: World, name: str) -> None:
    """Deleted with records pending, and applied anew after so long that Kafka has forgotten the progress."""
    world.pending = RECORDS
    world.apply(name, drainTimeout="90s")
    assert dies(Life(world), name) is None
    deliver(world, name)
    world.delete(name)
    assert dies(Life(world), name, until=lambda: world.find(name) is None, step_ms=40_000) is None
    admin, group = AdminClient({"bootstrap.servers": world.bootstrap_servers}), group_of(world, name)
    admin.delete_consumer_groups([group])[group].result(30)
    assert progress(world, name) == [NOTHING, NOTHING]
    world.apply(name)


def deliver(world: World, name: str) -> None:
    """Progress of the first partition, as relays leave it."""
    relay = Consumer({"bootstrap.servers": world.bootstrap_servers, "group.id": group_of(world, name)})

    def is_committed() -> bool:
        offset, text = DELIVERED
        try:
            relay.commit(offsets=[TopicPartition(source_of(world, name), 0, offset, text)], asynchronous=False)
        except KafkaException:
            return False  # the coordinator of a new group is not there yet
        return True

    wait_for(is_committed)
    relay.close()


def progress(world: World, name: str) -> list[tuple[int, str | None]]:
    """Return what is committed of the source, by partition."""
    relay = Consumer({"bootstrap.servers": world.bootstrap_servers, "group.id": group_of(world, name)})
    wanted = [TopicPartition(source_of(world, name), number) for number in range(PARTITIONS)]
    committed = [(found.offset, found.metadata or "") for found in relay.committed(wanted, timeout=30)]
    relay.close()
    return [(offset, text) for offset, text in committed]


def source_of(world: World, name: str) -> str:
    return f"{world.team}.{name}.delayed"


def group_of(world: World, name: str) -> str:
    return f"delaytopic.{world.team}.{name}"
