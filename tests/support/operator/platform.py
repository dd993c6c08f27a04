"""A platform team's half of a cluster, and an app team that uses it: for tests of the whole operator."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Self

from playground.kube.awaiting import await_condition, await_gone, condition_of
from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.operator.process import OperatorProcess

PLURALS = {"DelayClass": "delayclasses", "DelayTopic": "delaytopics", "RecurringRecord": "recurringrecords"}
API = "/apis/delaytopic.dev/v1beta1"
QUICK = {"resync": "10s", "poll": "1s", "statusInterval": "2s", "leaseDuration": "5s"}
"""Settings under which a test does not wait long."""


class Platform:
    """One operator with its default class, in namespaces of its own; `team` is that of the app team."""

    def __init__(
        self,
        plane: ControlPlane,
        make_namespace: Callable[..., str],
        make_operator: Callable[..., OperatorProcess],
        kafka: KafkaAddress,
        redis: RedisAddress,
        teams: int = 1,
    ) -> None:
        """Make the namespaces, `teams` of them for app teams; nothing runs yet."""
        self.plane = plane
        self.client = plane.client
        self.kafka = kafka
        self.redis = redis
        self.namespace = make_namespace("platform", pods=True)
        self.teams = [make_namespace("shop", pods=True) for _ in range(teams)]
        self.team = self.teams[0]
        self.class_name = f"standard-{self.namespace.rpartition('-')[2]}"
        self._make_operator = make_operator
        self.operator = self.make_operator("operator")

    def make_operator(self, name: str, **settings: object) -> OperatorProcess:
        """One that is not started yet."""
        return self._make_operator(
            name, self.namespace, **{**QUICK, "watchNamespaces": self.teams, "relayNamespaces": self.teams, **settings}
        )

    def of_team(self, number: int) -> Self:
        """The same platform as another of its app teams uses it."""
        another = copy(self)
        another.team = self.teams[number]
        return another

    def start(self) -> Platform:
        """With the class applied, and the operator leading."""
        self.apply_class()
        self.operator.start().wait_until("leader")
        return self

    def apply_class(self, **spec: Any) -> None:
        """The class of this platform, with other fields than usual."""
        usual = {
            "connection": {"bootstrapServers": self.kafka.bootstrap_servers},
            "backend": {"type": "RedisZset", "redis": {"url": self.redis.url}},
            "defaults": {"partitions": 4, "replicationFactor": 1},
        }
        self.apply("DelayClass", self.class_name, {**usual, **spec})

    def apply_topic(self, name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> str:
        """A DelayTopic of the team; its topics begin with the namespace and the name. Returns the source topic."""
        source = f"{self.team}.{name}.delayed"
        usual = {
            "delayClassName": self.class_name,
            "source": {"topic": source},
            "target": {"topic": f"{self.team}.{name}"},
        }
        self.apply("DelayTopic", name, {**usual, **spec}, namespace=self.team, annotations=annotations)
        return source

    def apply(
        self,
        kind: str,
        name: str,
        spec: dict[str, Any],
        namespace: str | None = None,
        annotations: dict[str, str] | None = None,
    ) -> None:
        metadata = {"name": name, "annotations": annotations or {}}
        document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
        scope = f"{API}/namespaces/{namespace}" if namespace is not None else API
        self.client.apply(f"{scope}/{PLURALS[kind]}/{name}", document)

    def path(self, name: str) -> str:
        """Of a DelayTopic of the team."""
        return f"{API}/namespaces/{self.team}/delaytopics/{name}"

    def topic(self, name: str) -> Object:
        """A DelayTopic of the team, as it is now."""
        return self.client.get(self.path(name))

    def condition(self, name: str, type: str) -> Object:
        return condition_of(self.topic(name), type)

    def await_condition(
        self, name: str, type: str, status: str = "True", *, reason: str = "", seconds: float = 40.0
    ) -> Object:
        return await_condition(self.client, self.path(name), type, status, reason=reason, seconds=seconds)

    def delete_topic(self, name: str) -> None:
        self.client.delete(self.path(name))

    def await_gone(self, name: str, seconds: float = 40.0) -> None:
        await_gone(self.client, self.path(name), seconds=seconds)

    def objects(self, kind: str, group: str = "apps/v1", name: str | None = None) -> list[Object]:
        """List objects that the operator made in its namespace, for one DelayTopic if it is named."""
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        path = f"{root}/namespaces/{self.namespace}/{kind}"
        selector = "app.kubernetes.io/managed-by=delaytopic-operator"
        if name is not None:
            selector += f",delaytopic.dev/namespace={self.team},delaytopic.dev/name={name}"
        return list(self.client.get(path, labelSelector=selector)["items"])

    def remove(self) -> None:
        """Leave nothing to the next test: without an operator, finalizers are nobody's."""
        self.operator.stop_whatever_happens()
        for team in self.teams:
            for found in self.client.get(f"{API}/namespaces/{team}/delaytopics")["items"]:
                path = f"{API}/namespaces/{team}/delaytopics/{found['metadata']['name']}"
                self.client.merge(path, {"metadata": {"finalizers": None}})
        for found in self.client.get(f"{API}/delayclasses")["items"]:
            path = f"{API}/delayclasses/{found['metadata']['name']}"
            if path.startswith(f"{API}/delayclasses/{self.class_name}"):
                self.client.merge(path, {"metadata": {"finalizers": None}})
                # One whose deletion waited for its finalizer has gone with it.
                if "deletionTimestamp" not in found["metadata"]:
                    self.client.delete(path)
