"""A thousand DelayTopics of one class: how long a full pass takes, in how much memory, and what it asks for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.audit import by_verb
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import API, Platform
from tests.support.operator.running_platform import running_platform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

TOPICS = 1_000
MOST_PROCESSOR_SECONDS = 60
"""Of a full pass: how long that takes depends on what else the machine does."""
MOST_BYTES = 200 * 1024 * 1024
AS_INSTALLED: dict[str, Any] = {"resync": "5m", "poll": "15s", "statusInterval": "5m", "leaseDuration": "15s"}
SUCCESSES = 'delaytopic_operator_reconcile_total{result="Success"}'


@dataclass
class Measured:
    """Time, memory and requests of the operator."""

    made_s: float
    full_pass_s: float
    processor_s: float
    memory_bytes: int
    steady_passes: int
    steady_seconds: float
    steady_calls: dict[str, int]


@pytest.fixture(scope="module")
def crowd(
    control_plane: ControlPlane,
    node: LocalNode,
    kafka: KafkaAddress,
    redis: RedisAddress,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Platform]:
    """A platform as installed, whose class runs its relays where no node takes them."""
    directory = tmp_path_factory.mktemp("crowd")

    def log_in(own: str, team: str) -> Path:
        return control_plane.kubeconfig_for_user(own, groups=["system:masters"])

    relays = f"relays-{secrets.token_hex(4)}"
    settings = {**AS_INSTALLED, "relayNamespaces": [relays]}
    with running_platform(control_plane, node, kafka, redis, directory, log_in=log_in, **settings) as platform:
        control_plane.client.create("/api/v1/namespaces", {"metadata": {"name": relays}})
        platform.apply_class(relayNamespace=relays, defaults={"partitions": 1, "replicationFactor": 1})
        yield platform
        control_plane.client.delete(f"/api/v1/namespaces/{relays}")


def test_a_full_pass_is_fast_and_small_and_writes_next_to_nothing(
    crowd: Platform, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = _measure(crowd)

    with capsys.disabled():
        print(_report(measured))
    assert measured.processor_s < MOST_PROCESSOR_SECONDS
    assert measured.memory_bytes < MOST_BYTES
    writes = sum(measured.steady_calls.get(verb, 0) for verb in ("create", "update", "patch", "delete"))
    renewals = measured.steady_seconds  # of the lease: at most one a second
    assert writes - renewals < measured.steady_passes / 100


def _measure(platform: Platform) -> Measured:
    topics = KafkaTopics(platform.kafka.bootstrap_servers)
    for name in ("everything", "refused"):
        topics.create(f"{platform.team}.{name}", 1, message_timestamp_type="LogAppendTime")
    started = time.monotonic()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: _apply(platform, number), range(TOPICS)))
    wait_for(lambda: _settled(platform) == TOPICS, lambda: f"{_settled(platform)} settled", timeout_s=900)
    made_s = time.monotonic() - started

    platform.operator.terminate()
    platform.operator.log_file.unlink()
    started = time.monotonic()
    platform.operator.start().wait_until("leader")
    wait_for(lambda: _successes(platform) >= TOPICS, platform.operator.why, timeout_s=300)
    full_pass_s, processor_s = time.monotonic() - started, platform.operator.processor_s()

    settled = _successes(platform) + TOPICS
    wait_for(lambda: _successes(platform) >= settled, platform.operator.why, timeout_s=120)
    mark, began, before = platform.plane.audit.mark(), time.monotonic(), _successes(platform)
    wait_for(lambda: _successes(platform) >= before + 3 * TOPICS, platform.operator.why, timeout_s=240)
    passes = int(_successes(platform) - before)
    calls = by_verb(platform.plane.audit.calls(mark, user=platform.namespace))
    seconds = time.monotonic() - began
    memory_bytes = platform.operator.memory_bytes()
    return Measured(made_s, full_pass_s, processor_s, memory_bytes, passes, seconds, calls)


def _successes(platform: Platform) -> float:
    """Of this process; a page that does not answer in time, or has no such series yet, tells of none."""
    try:
        return platform.operator.metric(SUCCESSES)
    except (KeyError, TimeoutError):
        return 0


def _apply(platform: Platform, number: int) -> None:
    spec = {
        "delayClassName": platform.class_name,
        "source": {"topic": f"{platform.team}.route-{number:04}"},
        "target": {"topic": f"{platform.team}.everything", "management": "Observe"},
        "deadLetter": {"topic": f"{platform.team}.refused", "management": "Observe"},
        "deletionPolicy": "Retain",
    }
    metadata = {"name": f"route-{number:04}", "namespace": platform.team}
    document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": metadata, "spec": spec}
    platform.client.create(f"{API}/namespaces/{platform.team}/delaytopics", document)


def _settled(platform: Platform) -> int:
    """Count those that have their topics, and relays that wait for a node."""
    found = platform.client.get(f"{API}/namespaces/{platform.team}/delaytopics")["items"]
    wanted = {("TopicsReady", "True"), ("RelayAvailable", "False")}
    return sum(
        wanted <= {(each["type"], each["status"]) for each in topic.get("status", {}).get("conditions", [])}
        and "relay" in topic["status"]
        for topic in found
    )


def _report(measured: Measured) -> str:
    calls = ", ".join(f"{count} {verb}" for verb, count in sorted(measured.steady_calls.items())) or "none"
    return (
        f"\n{TOPICS} DelayTopics: made from nothing in {measured.made_s:.0f} s; a full pass of a new operator took "
        f"{measured.full_pass_s:.1f} s (from the start of the process) and {measured.processor_s:.1f} s of a processor;"
        f" memory {measured.memory_bytes / 2**20:.0f} MiB; steady state: {measured.steady_passes} passes in "
        f"{measured.steady_seconds:.0f} s, API calls: {calls}"
    )
