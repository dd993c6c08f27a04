"""One operator with many DelayTopics on a real API server and a real Kafka: what it costs, and how soon it acts."""

from __future__ import annotations

import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from playground.kube.awaiting import await_condition
from playground.kube.control_plane import ControlPlane
from playground.kube.request_log import by_verb

from bench.clock import wait_for
from bench.operator.operator_process import OperatorProcess
from bench.operator.relays import RelaysAsPods
from delaytopic_gateway.client.topics import TopicPlan, create_topics

API = "/apis/delaytopic.dev/v1beta1"
KEYS = "signing-keys"
"""The Secret of the class that relays read when they start, so that a change starts all of them anew."""
WRITES = ("create", "update", "patch", "delete")
NEW_ONES = 10
"""DelayTopics that are applied while all others are in steady state, one after another."""
SHARED_TOPICS = ("everything", "refused")
"""The target and the dead letters of all DelayTopics."""
LOOKS_EVERY_S = 0.5
LONGEST_S = 3_600.0
Say = Callable[[str], object]


@dataclass(frozen=True)
class Cost:
    """The operator with so many DelayTopics, each with one relay whose page it reads."""

    delay_topics: int
    made_s: float
    """The time from the first YAML until all were ready."""
    restart_s: float
    """The time from the start of an operator until it has looked at all."""
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
    """The time from the YAML of one more DelayTopic until it is ready, the median of some."""
    rotated_s: float
    """The time from the change of the class's Secret until all relays are ready that start with it."""
    rotated_writes_per_s: float
    """Requests to the API server that write meanwhile."""
    memory_mib: float
    """Resident memory, before the Secret changes."""

    def document(self) -> dict[str, float]:
        """Return its figures by name."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


class Crowd(NamedTuple):
    """An operator that leads, and the namespaces around it."""

    plane: ControlPlane
    operator: OperatorProcess
    namespace: str
    """The namespace of the operator; it is the name of its user, too."""
    relays: str
    """The namespace in which relays run."""
    team: str
    """The namespace of DelayTopics; names of topics and of the class begin with it."""

    @property
    def path(self) -> str:
        """Return where DelayTopics are."""
        return f"{API}/namespaces/{self.team}/delaytopics"


@contextmanager
def crowd(plane: ControlPlane, bootstrap_servers: str, redis_url: str, directory: Path) -> Iterator[Crowd]:
    """Run an operator as installed, with a class whose relays run where no node takes them, and all answer."""
    suffix = secrets.token_hex(4)
    namespace, relays, team = (f"{stem}-{suffix}" for stem in ("platform", "relays", "shop"))
    for name in (namespace, relays, team):
        plane.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    kubeconfig = plane.kubeconfig_for_user(namespace, groups=["system:masters"])
    operator = OperatorProcess(directory, kubeconfig, namespace, relays, team)
    for_all = [TopicPlan(f"{team}.{each}", 1, {"message.timestamp.type": "LogAppendTime"}) for each in SHARED_TOPICS]
    create_topics(bootstrap_servers, for_all)
    of_class = {
        "connection": {"bootstrapServers": bootstrap_servers},
        "backend": {"type": "RedisZset", "redis": {"url": redis_url}, "signingKey": {"secretName": KEYS}},
        "defaults": {"partitions": 1, "replicationFactor": 1},
        "relayNamespace": relays,
    }
    found = Crowd(plane, operator, namespace, relays, team)
    _write_keys(found)
    of_path = f"{API}/delayclasses/{team}"
    plane.client.apply(of_path, _document("DelayClass", {"name": team}, of_class))
    try:
        with RelaysAsPods(plane.client, relays):
            operator.lead()
            yield found
    finally:
        operator.kill()
        # Nobody is left to take the finalizer away.
        plane.client.merge(of_path, {"metadata": {"finalizers": None}})
        plane.client.delete(of_path)
        for name in (team, relays, namespace):
            plane.client.delete(f"/api/v1/namespaces/{name}")


def measure(platform: Crowd, delay_topics: int, steady_s: float = 60.0, say: Say = lambda _: None) -> Cost:
    """Make so many DelayTopics, start the operator anew, watch it for some time while nothing changes, and rotate."""
    operator = platform.operator
    say(f"{delay_topics} DelayTopics are applied")
    made_s = _seconds(lambda: _make(platform, delay_topics))
    say(f"all are ready after {made_s:.0f} s; the operator starts anew")
    operator.stop()
    restart_s = _seconds(lambda: _restart(operator, delay_topics))
    restart_processor_s = operator.processor_s()
    say(f"it has looked at all after {restart_s:.0f} s; nothing changes for {steady_s:.0f} s")
    # The reports and lists of the first look are over.
    before = operator.passes()
    _await(lambda: operator.passes() >= before + delay_topics, "another look at all")
    log, began_s, passes = platform.plane.audit.mark(), time.monotonic(), operator.passes()
    processor_s = operator.processor_s()
    time.sleep(steady_s)
    seconds = time.monotonic() - began_s
    processors = (operator.processor_s() - processor_s) / seconds
    passes_per_s = (operator.passes() - passes) / seconds
    reads, writes = _requests(platform, log)
    a_second = f"{passes_per_s:.1f} looks, {reads / seconds:.2f} reads and {writes / seconds:.2f} writes a second"
    say(f"{processors:.3f} processors, {a_second}; {NEW_ONES} more are applied")
    ready = sorted(_seconds(partial(_make_one, platform, delay_topics + each)) for each in range(NEW_ONES))
    memory_bytes = operator.memory_bytes()
    say(f"ready after {ready[NEW_ONES // 2]:.2f} s; {memory_bytes / 2**20:.0f} MiB; the Secret of the class changes")
    log = platform.plane.audit.mark()
    rotated_s = _seconds(lambda: _rotate(platform))
    return Cost(
        delay_topics,
        made_s,
        restart_s,
        restart_processor_s,
        processors,
        passes_per_s,
        reads / seconds,
        writes / seconds,
        ready[NEW_ONES // 2],
        rotated_s,
        _requests(platform, log)[1] / rotated_s,
        memory_bytes / 2**20,
    )


def _seconds(do: Callable[[], object]) -> float:
    started_s = time.monotonic()
    do()
    return time.monotonic() - started_s


def _await(holds: Callable[[], bool], what: str) -> None:
    """Wait, and ask in a sixth of the time at most: a list of thousands is work for the API server, too."""

    def spared() -> bool:
        asked_s = time.monotonic()
        done = holds()
        if not done:
            time.sleep(5 * (time.monotonic() - asked_s))
        return done

    wait_for(spared, what, timeout_s=LONGEST_S, every_s=LOOKS_EVERY_S)


def _requests(platform: Crowd, since: int) -> tuple[int, int]:
    """Count the operator's requests since a mark, those that read and those that write, without those for its Lease."""
    calls = [call for call in platform.plane.audit.calls(since, user=platform.namespace) if call.resource != "leases"]
    verbs = by_verb(calls)
    writes = sum(verbs.get(verb, 0) for verb in WRITES)
    return sum(verbs.values()) - writes, writes


def _make(platform: Crowd, delay_topics: int) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: _apply(platform, number), range(delay_topics)))
    _await(lambda: _ready(platform) == delay_topics, "all are ready")


def _restart(operator: OperatorProcess, delay_topics: int) -> None:
    operator.lead()
    _await(lambda: operator.passes() >= delay_topics, "the first look at all")


def _make_one(platform: Crowd, number: int) -> None:
    await_condition(platform.plane.client, _apply(platform, number), "Ready", "True", seconds=300)


def _rotate(platform: Crowd) -> None:
    """Change the Secret, and wait until every relay was started with what it holds now."""
    before = {name: template for name, template, _ in _relays(platform)}
    _write_keys(platform)
    _await(lambda: all(on and before[name] != now for name, now, on in _relays(platform)), "all relays have the Secret")


def _relays(platform: Crowd) -> list[tuple[str, Any, bool]]:
    """List the name of each Deployment, the annotations of its template, and whether its relays are ready with them."""
    found = platform.plane.client.get(f"/apis/apps/v1/namespaces/{platform.relays}/deployments")["items"]
    return [
        (each["metadata"]["name"], each["spec"]["template"]["metadata"].get("annotations"), _is_rolled_out(each))
        for each in found
    ]


def _is_rolled_out(deployment: dict[str, Any]) -> bool:
    status, wanted = deployment.get("status", {}), deployment["spec"]["replicas"]
    counts = {status.get(each, 0) for each in ("replicas", "updatedReplicas", "readyReplicas")}
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == {wanted}


def _write_keys(platform: Crowd) -> None:
    """Write the Secret with a key that it never held."""
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": KEYS},
        "data": {"keys": b64encode(secrets.token_hex(16).encode()).decode()},
    }
    platform.plane.client.apply(f"/api/v1/namespaces/{platform.relays}/secrets/{KEYS}", document)


def _apply(platform: Crowd, number: int) -> str:
    """Apply one, and return its path."""
    spec = {
        "delayClassName": platform.team,
        "source": {"topic": f"{platform.team}.route-{number:04}"},
        "target": {"topic": f"{platform.team}.everything", "management": "Observe"},
        "deadLetter": {"topic": f"{platform.team}.refused", "management": "Observe"},
        "deletionPolicy": "Retain",
    }
    metadata = {"name": f"route-{number:04}", "namespace": platform.team}
    platform.plane.client.create(platform.path, _document("DelayTopic", metadata, spec))
    return f"{platform.path}/{metadata['name']}"


def _document(kind: str, metadata: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "delaytopic.dev/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


def _ready(platform: Crowd) -> int:
    found = platform.plane.client.get(platform.path)["items"]
    return sum(
        ("Ready", "True") in {(each["type"], each["status"]) for each in topic.get("status", {}).get("conditions", [])}
        for topic in found
    )
