"""One operator with many DelayTopics on a real API server and a real Kafka: what it costs, and how soon it acts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from playground.kube.awaiting import await_condition
from tests.cluster.audit import by_verb
from tests.cluster.control_plane import ControlPlane
from tests.cluster.node.local_node import LocalNode
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.platform import API, Platform
from tests.support.operator.running_platform import running_platform
from tests.support.relay.process import wait_for
from tests.support.servers.kafka_topics import KafkaTopics

from bench.operator.relays import RelaysAsPods

AS_INSTALLED: dict[str, Any] = {"resync": "5m", "poll": "15s", "statusInterval": "5m", "leaseDuration": "15s"}
SUCCESSES = 'delaytopic_operator_reconcile_total{result="Success"}'
WRITES = ("create", "update", "patch", "delete")
NEW_ONES = 10
"""DelayTopics that are applied while all others are in steady state, one after another."""
Say = Callable[[str], object]


@dataclass(frozen=True)
class Cost:
    """The operator with so many DelayTopics, each with one relay whose page it reads."""

    delay_topics: int
    made_s: float
    """From the first YAML until all were ready."""
    restart_s: float
    """From the start of an operator until it has looked at all."""
    restart_processor_s: float
    """Processor seconds that this took."""
    steady_processors: float
    """Processors that it keeps busy while nothing changes."""
    steady_passes_per_s: float
    """Looks at DelayTopics a second."""
    steady_reads_per_s: float
    """Requests to the API server that read."""
    steady_writes_per_s: float
    """Requests to the API server that write, without renewals of the Lease."""
    ready_s: float
    """From the YAML of one more DelayTopic until it is ready, the median of some."""
    memory_mib: float
    """Resident memory."""

    def document(self) -> dict[str, float]:
        """Return its figures by name."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


@contextmanager
def crowd(
    plane: ControlPlane, node: LocalNode, kafka: KafkaAddress, redis: RedisAddress, directory: Path
) -> Iterator[Platform]:
    """A platform as installed, whose class runs its relays where no node takes them, and where all of them answer."""

    def log_in(own: str, team: str) -> Path:
        return plane.kubeconfig_for_user(own, groups=["system:masters"])

    relays = f"relays-{secrets.token_hex(4)}"
    settings = {**AS_INSTALLED, "relayNamespaces": [relays]}
    plane.client.create("/api/v1/namespaces", {"metadata": {"name": relays}})
    with (
        RelaysAsPods(plane.client, relays),
        running_platform(plane, node, kafka, redis, directory, log_in=log_in, **settings) as platform,
    ):
        platform.apply_class(relayNamespace=relays, defaults={"partitions": 1, "replicationFactor": 1})
        yield platform
    plane.client.delete(f"/api/v1/namespaces/{relays}")


def measure(platform: Platform, delay_topics: int, steady_s: float = 60.0, say: Say = lambda _: None) -> Cost:
    """Make so many DelayTopics, start the operator anew, and watch it for some time while nothing changes."""
    topics = KafkaTopics(platform.kafka.bootstrap_servers)
    for name in ("everything", "refused"):
        topics.create(f"{platform.team}.{name}", 1, message_timestamp_type="LogAppendTime")
    say(f"{delay_topics} DelayTopics are applied")
    made_s = _seconds(lambda: _make(platform, delay_topics))
    say(f"all are ready after {made_s:.0f} s; the operator starts anew")
    platform.operator.terminate()
    platform.operator.log_file.unlink()
    restart_s = _seconds(lambda: _restart(platform, delay_topics))
    restart_processor_s = platform.operator.processor_s()
    say(f"it has looked at all after {restart_s:.0f} s; nothing changes for {steady_s:.0f} s")
    # The reports and lists of the first look are over.
    before = _passes(platform)
    wait_for(lambda: _passes(platform) >= before + delay_topics, platform.operator.why, timeout_s=600)
    mark, began_s, passes = platform.plane.audit.mark(), time.monotonic(), _passes(platform)
    processor_s = platform.operator.processor_s()
    time.sleep(steady_s)
    seconds = time.monotonic() - began_s
    processors = (platform.operator.processor_s() - processor_s) / seconds
    passes_per_s = (_passes(platform) - passes) / seconds
    calls = [call for call in platform.plane.audit.calls(mark, user=platform.namespace) if call.resource != "leases"]
    verbs = by_verb(calls)
    writes = sum(verbs.get(verb, 0) for verb in WRITES)
    say(f"{NEW_ONES} more are applied, one after another")
    ready = sorted(_seconds(partial(_make_one, platform, delay_topics + each)) for each in range(NEW_ONES))
    return Cost(
        delay_topics,
        made_s,
        restart_s,
        restart_processor_s,
        processors,
        passes_per_s,
        (sum(verbs.values()) - writes) / seconds,
        writes / seconds,
        ready[NEW_ONES // 2],
        platform.operator.memory_bytes() / 2**20,
    )


def _seconds(do: Callable[[], object]) -> float:
    started_s = time.monotonic()
    do()
    return time.monotonic() - started_s


def _make(platform: Platform, delay_topics: int) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: _apply(platform, number), range(delay_topics)))
    wait_for(lambda: _ready(platform) == delay_topics, lambda: f"{_ready(platform)} ready", timeout_s=3_600)


def _restart(platform: Platform, delay_topics: int) -> None:
    platform.operator.start().wait_until("leader")
    wait_for(lambda: _passes(platform) >= delay_topics, platform.operator.why, timeout_s=600)


def _make_one(platform: Platform, number: int) -> None:
    await_condition(platform.client, _apply(platform, number), "Ready", "True", seconds=300)


def _passes(platform: Platform) -> float:
    """Of this process; a page that does not answer in time, or has no such series yet, tells of none."""
    try:
        return platform.operator.metric(SUCCESSES)
    except (KeyError, TimeoutError):
        return 0


def _apply(platform: Platform, number: int) -> str:
    """Apply one, and return its path."""
    spec = {
        "delayClassName": platform.class_name,
        "source": {"topic": f"{platform.team}.route-{number:04}"},
        "target": {"topic": f"{platform.team}.everything", "management": "Observe"},
        "deadLetter": {"topic": f"{platform.team}.refused", "management": "Observe"},
        "deletionPolicy": "Retain",
    }
    metadata = {"name": f"route-{number:04}", "namespace": platform.team}
    document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": metadata, "spec": spec}
    path = f"{API}/namespaces/{platform.team}/delaytopics"
    platform.client.create(path, document)
    return f"{path}/{metadata['name']}"


def _ready(platform: Platform) -> int:
    found = platform.client.get(f"{API}/namespaces/{platform.team}/delaytopics")["items"]
    return sum(
        ("Ready", "True") in {(each["type"], each["status"]) for each in topic.get("status", {}).get("conditions", [])}
        for topic in found
    )
