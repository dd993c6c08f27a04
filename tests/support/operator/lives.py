"""An operator's lives: real passes against a real API server and a real Kafka, each life with a memory of its own.

Relays do not run: what they would say of themselves is given, and so is the time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from redis import Redis
from tests.support.operator.crashing import Crashed, CrashingClusters, CrashingTransport, CrashPoint
from tests.support.relay.process import wait_for

from delaytopic_api import RelayStatus
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.relay_configs import config_place
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.execute.executor import Executor
from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
from delaytopic_operator.execute.topics import TopicsExecutor
from delaytopic_operator.fleet.looks import FleetLooks
from delaytopic_operator.kube.client import KubeApi, always
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.kube.transport import KubeTransport
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import record_name
from delaytopic_operator.observe.cluster import ClusterObserver
from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.observer import Observer
from delaytopic_operator.observe.told_verdicts import ToldVerdicts
from delaytopic_operator.observe.topics import TopicsObserver
from delaytopic_operator.reconciler import Reconciler
from delaytopic_operator.report.events import EventRecorder
from delaytopic_operator.report.metrics import OperatorMetrics
from delaytopic_operator.report.status import StatusMetrics, StatusWriter
from delaytopic_operator.resources import relays_name
from delaytopic_operator.runtime.resync import Resync

API = "/apis/delaytopic.dev/v1beta1"
PARTITIONS = 2
MADE = {
    "/apis/apps/v1": ("deployments",),
    "/api/v1": ("configmaps", "serviceaccounts"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/networking.k8s.io/v1": ("networkpolicies",),
}
MANAGED = "app.kubernetes.io/managed-by=delaytopic-operator"


@dataclass
class World:
    """Everything around an operator, with one class, and a team that has no node for its pods."""

    plane: ControlPlane
    bootstrap_servers: str
    redis_url: str
    platform: str
    team: str
    class_name: str
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    pending: int | None = None
    """The number of pending records that relays report; None: they report nothing."""

    def __post_init__(self) -> None:
        self._reader = Consumer({"bootstrap.servers": self.bootstrap_servers, "group.id": "looks"})

    def close(self) -> None:
        self._reader.close()

    def path(self, name: str) -> str:
        return f"{API}/namespaces/{self.team}/delaytopics/{name}"

    def apply_class(self) -> None:
        spec = {
            "connection": {"bootstrapServers": self.bootstrap_servers},
            "backend": {"type": "RedisZset", "redis": {"url": self.redis_url}},
            "defaults": {"partitions": PARTITIONS, "replicationFactor": 1},
        }
        document: Object = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayClass"}
        document |= {"metadata": {"name": self.class_name}, "spec": spec}
        self.plane.client.apply(f"{API}/delayclasses/{self.class_name}", document)

    def apply(self, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> None:
        usual = {
            "delayClassName": self.class_name,
            "source": {"topic": f"{self.team}.{name}.delayed"},
            "target": {"topic": f"{self.team}.{name}"},
        }
        metadata = {"name": name, "namespace": self.team, "annotations": annotations or {}}
        document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": metadata}
        self.plane.client.apply(self.path(name), document | {"spec": {**usual, **spec}})

    def find(self, name: str) -> Object | None:
        return self.plane.client.find(self.path(name))

    def delete(self, name: str) -> None:
        self.plane.client.delete(self.path(name))

    def fill(self, name: str, records: int) -> None:
        """Records in the source, and keys in the backlog, as relays would leave them."""
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for number in range(records):
            producer.produce(f"{self.team}.{name}.delayed", b"%d" % number, partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        with Redis.from_url(self.redis_url) as client:
            client.set(f"{{delaytopic.{self.team}.{name}:0}}:position", b"x")

    # -- what is there

    def end_of(self, name: str) -> dict[str, Any]:
        """Its state, after which nothing of it is left in Kubernetes: others need not list it any more."""
        state = self.state(name)
        if self.find(name) is not None:
            self.plane.client.merge(self.path(name), {"metadata": {"finalizers": None}})
            self.plane.client.request("DELETE", self.path(name))
        for group, plurals in MADE.items():
            for plural in plurals:
                query = {"labelSelector": f"{MANAGED},delaytopic.dev/name={name}"}
                self.plane.client.request("DELETE", f"{group}/namespaces/{self.platform}/{plural}", query=query)
        return state

    def state(self, name: str) -> dict[str, Any]:
        """All that is there of a DelayTopic, without what differs from one to the next."""
        found = self.find(name)
        state = {
            "object": _object(found) if found is not None else None,
            "objects": self._objects(name),
            "record": self._record(name),
            "topics": self.topics(name),
            "backlog": self.store(name),
        }
        key = Key(self.team, name)
        text = json.dumps(state, sort_keys=True)
        for digest in (record_name(key).rpartition("-")[2], relays_name(key).rpartition("-")[2]):
            text = text.replace(digest, "HASH")
        text = text.replace(name, "NAME")
        # What a configuration says has the name in it, and so has its digest.
        text = re.sub(r"HASH-[0-9a-f]{16}\b", "HASH-CONFIG", text)
        text = re.sub(r'(config-hash|owner-uid|uid|topicId|namespaceUid|mark)": "[^"]*"', r'\1": "ID"', text)
        text = re.sub(r'"declaredMs": \d+', '"declaredMs": 0', text)
        cleaned: dict[str, Any] = json.loads(text)
        return cleaned

    def topics(self, name: str) -> dict[str, Any]:
        """First and next offset of each partition, by topic."""
        begin = f"{self.team}.{name}"
        listed = self._reader.list_topics(timeout=30).topics
        mine = {topic: sorted(found.partitions) for topic, found in listed.items() if _belongs(topic, begin)}
        offsets = {topic: self._offsets(topic, partitions) for topic, partitions in mine.items()}
        return {topic: found for topic, found in offsets.items() if found is not None}

    def _offsets(self, topic: str, partitions: list[int]) -> list[list[int]] | None:
        """Return None for a topic that was deleted after it was listed."""
        try:
            return [list(self._reader.get_watermark_offsets(TopicPartition(topic, each), 30)) for each in partitions]
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise

    def store(self, name: str) -> int:
        """Keys in Redis."""
        with Redis.from_url(self.redis_url) as client:
            return len(list(client.scan_iter(match=f"{{delaytopic.{self.team}.{name}:*", count=1_000)))

    def _objects(self, name: str) -> dict[str, Any]:
        labels = f"{MANAGED},delaytopic.dev/name={name}"
        found = {}
        for group, plurals in MADE.items():
            for plural in plurals:
                path = f"{group}/namespaces/{self.platform}/{plural}"
                for each in self.plane.client.get(path, labelSelector=labels)["items"]:
                    if not each["metadata"]["name"].startswith("delay-backlog-"):
                        found[f"{plural}/{each['metadata']['name']}"] = each
        return {place: _object(each) for place, each in found.items() if not _is_former(place, found)}

    def _record(self, name: str) -> Any:
        path = f"/api/v1/namespaces/{self.platform}/configmaps/{record_name(Key(self.team, name))}"
        found = self.plane.client.find(path)
        if found is None:
            return None
        record = json.loads(found["data"]["record.json"])
        return {field: value for field, value in record.items() if not field.startswith("drain")}


def _is_former(place: str, found: dict[str, dict[str, Any]]) -> bool:
    """Tell whether it is a configuration that a Deployment had before: it stays, as no pod ever becomes ready here."""
    used = [config_place(each) for of_kind, each in found.items() if of_kind.startswith("deployments/")]
    metadata = found[place]["metadata"]
    is_config = place.startswith("configmaps/") and bool(found[place].get("immutable"))
    return bool(used) and is_config and (metadata["namespace"], metadata["name"]) not in used


class Life:
    """One process of an operator, from its start to its end."""

    def __init__(self, world: World, point: CrashPoint | None = None, **settings: Any) -> None:
        """`settings` are further ones of the operator."""
        self.point = point or CrashPoint()
        self._world = world
        usual = {"namespace": world.platform, "watchNamespaces": [world.team], "poll": "1s", "statusInterval": "0s"}
        config = OperatorConfig.model_validate({**usual, **settings})
        login = ClusterLogin(world.plane.kubeconfig)
        self._store = ObjectCache(world.platform, [world.team])
        self._kafka = CrashingClusters(self.point)
        self._transports = [CrashingTransport(login, self.point), KubeTransport(login, lambda *_: None)]
        kube = KubeApi(self._transports[0], always, self._store)
        plain = KubeApi(self._transports[1], always)
        self._resync = Resync(plain, self._store, config, list, lambda _: None)
        topics = TopicsObserver(self._kafka, kube)
        pages: Any = _Pages(world)
        cluster = ClusterObserver(kube, self._store, pages, config)
        observer = Observer(cluster, topics, self._store, config, ToldVerdicts(pages))
        writer = StatusWriter(kube, EventRecorder(plain, "test"), config)
        metrics, ledger, turns = StatusMetrics(OperatorMetrics()), ScalingLedger(), RolloutLimiter(config.rollouts)
        self._reconciler = Reconciler(
            observer,
            Executor(kube, self._store.get, TopicsExecutor(topics, kube), config, self._guard, lambda _: None),
            writer,
            metrics,
            self._store,
            ledger,
            turns,
            FleetLooks(observer, ledger, turns, writer, metrics, config, random),
        )

    def pass_over(self, name: str) -> bool:
        """One pass; whether it went well. Raises `Crashed` at the crash point."""
        self._resync.look()
        try:
            self._reconciler.reconcile(Key(self._world.team, name), self._world.now_ms, self._world.now_ms)
        except OperatorError:
            return False
        return True

    def live(self, name: str, *, until: Callable[[], bool] = lambda: True, step_ms: int = 0) -> None:
        """Passes until one has nothing more to write; between two of them `step_ms` go by."""

        def settled() -> bool:
            before = len(self.point.writes)
            well = self.pass_over(name)
            quiet = well and len(self.point.writes) == before
            self._world.now_ms += step_ms
            return quiet and until()

        wait_for(settled, lambda: "\n".join(self.point.calls[-60:]))

    def end(self) -> None:
        """Nothing of it is left."""
        self._kafka.close()
        for transport in self._transports:
            transport.close()

    def _guard(self) -> float:
        return 30.0


def dies(life: Life, name: str, **how: Any) -> str | None:
    """Let it live; at which call it died, or None if it did not."""
    try:
        life.live(name, **how)
    except Crashed as crashed:
        return str(crashed)
    finally:
        life.end()
    return None


class _Pages:
    """The relays' view: all shards are at work, and hold what the world says."""

    def __init__(self, world: World) -> None:
        self._world = world

    def read(self, pods: list[dict[str, Any]], deadline_s: float) -> list[RelayPage]:
        if self._world.pending is None:
            return [RelayPage(pod["metadata"]["name"], None, "does not answer") for pod in pods]
        return [RelayPage(pod["metadata"]["name"], self._status(pod), None) for pod in pods[:1]]

    def _status(self, pod: dict[str, Any]) -> RelayStatus:
        world = self._world
        shards = [
            {"partition": number, "state": "Delivering", "committedOffset": 0, "position": 0, "overdue": 0}
            | {"pending": (world.pending or 0) if number == 0 else 0, "ingestLag": 0}
            for number in range(PARTITIONS)
        ]
        document = {
            "relay": pod["metadata"]["name"],
            "delayTopic": f"{world.team}/x",
            "startedAtMs": world.now_ms - 60_000,
            "asOfMs": world.now_ms,
            "state": "Running",
            "guarantee": "ExactlyOnce",
            "backend": "RedisZset",
            "speedups": True,
            **dict.fromkeys(("deliveredTotal", "deadLetteredTotal", "supersededTotal", "cancelledTotal"), 0),
            "pending": world.pending or 0,
            "overdue": 0,
            "ingestLag": 0,
            "memoryBytes": 0,
            "shards": shards,
        }
        return RelayStatus.model_validate(document)


def _belongs(topic: str, begin: str) -> bool:
    return topic == begin or topic.startswith(f"{begin}.")


def _object(found: Object) -> dict[str, Any]:
    """Without what the API server and its controllers say."""
    metadata = found["metadata"]
    kept = {name: metadata[name] for name in ("labels", "finalizers", "ownerReferences") if name in metadata}
    conditions = (
        found.get("status", {}).get("conditions", []) if "observedGeneration" in found.get("status", {}) else []
    )
    of_ours = found.get("kind") == "DelayTopic"
    said = sorted([each["type"], each["status"], each["reason"]] for each in conditions) if of_ours else []
    content: dict[str, Any] = {name: found[name] for name in ("spec", "data") if name in found}
    return {"metadata": kept, **content, "conditions": said, "deleting": "deletionTimestamp" in metadata}
