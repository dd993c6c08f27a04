"""A thousand DelayTopics of one class, each with a relay that answers: what the operator takes for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.operator.measure import crowd, measure
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import Platform

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly, pytest.mark.alone]

TOPICS = 1_000
MOST_PROCESSOR_SECONDS = 60
"""Of the first look at all: how long that takes depends on what else the machine does."""
MOST_PROCESSORS = 0.25
"""While nothing changes: four thousand have one processor."""
MOST_BYTES = 300 * 1024 * 1024
MOST_WRITES_PER_S = 5.0
"""A status shows its numbers once in five minutes."""


@pytest.fixture(scope="module")
def platform(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Platform]:
    """A platform as installed."""
    with crowd(control_plane, node, kafka, redis, tmp_path_factory.mktemp("crowd")) as made:
        yield made


def test_looks_at_a_thousand_are_cheap_and_write_next_to_nothing(
    platform: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    cost = measure(platform, TOPICS)

    with capsys.disabled():
        print(f"\n{cost}")
    assert cost.restart_processor_s < MOST_PROCESSOR_SECONDS
    assert cost.steady_processors < MOST_PROCESSORS
    assert cost.steady_writes_per_s < MOST_WRITES_PER_S
    assert cost.memory_mib * 2**20 < MOST_BYTES
