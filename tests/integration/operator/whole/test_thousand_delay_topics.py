"""A thousand DelayTopics of one class, each with a relay that answers: what the operator takes for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.operator.measure import Cost, Crowd, crowd, measure
from playground.kube.control_plane import ControlPlane
from tests.harness.shared_servers import KafkaAddress, RedisAddress

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly, pytest.mark.alone]

TOPICS = 1_000
MOST_PROCESSOR_SECONDS = 60
"""Of the first look at all: how long that takes depends on what else the machine does."""
MOST_PROCESSORS = 0.25
"""The processors of an operator while nothing changes: four thousand have one."""
MOST_BYTES = 300 * 1024 * 1024
MOST_WRITES_PER_S = 5.0
"""A status shows its numbers once in five minutes."""
MOST_ROTATION_S = 900
"""Relays start anew by ten DelayTopics at once: how long that takes depends on what else the machine does."""


@pytest.fixture(scope="module")
def platform(
    control_plane: ControlPlane, kafka: KafkaAddress, redis: RedisAddress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowd]:
    """A platform as installed."""
    with crowd(control_plane, kafka.bootstrap_servers, redis.url, tmp_path_factory.mktemp("crowd")) as made:
        yield made


@pytest.fixture(scope="module")
def cost(platform: Crowd) -> Cost:
    """The cost of a thousand of them, one change of a Secret included."""
    return measure(platform, TOPICS)


def test_looks_at_a_thousand_are_cheap_and_write_next_to_nothing(
    cost: Cost, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\n{cost}")
    assert cost.restart_processor_s < MOST_PROCESSOR_SECONDS
    assert cost.steady_processors < MOST_PROCESSORS
    assert cost.steady_writes_per_s < MOST_WRITES_PER_S
    assert cost.memory_mib * 2**20 < MOST_BYTES


def test_a_secret_of_the_class_reaches_the_relays_of_a_thousand_within_minutes(cost: Cost) -> None:
    assert cost.rotated_s < MOST_ROTATION_S
