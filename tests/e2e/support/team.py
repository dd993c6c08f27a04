"""An app team in a real cluster: its DelayTopics, and its traffic, which pods of its own send and read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from playground.kube.awaiting import await_condition, await_gone, await_object
from playground.kube.kube_client import Object
from playground.platform.installed_platform import API, InstalledPlatform
from playground.platform.pod_runs import PodRun, start_pod
from playground.traffic.plan import Plan
from playground.traffic.reader import Work
from playground.traffic.verdict import Expected
from tests.e2e.support.promises import require_kept

PROGRAMS = "playground.traffic"
POD_SECONDS = 60.0
"""For a pod to start and to end, on a machine that has much else to do."""


class Team:
    """One namespace. Its pods send from `senders`, another namespace, where the own one is going to be deleted."""

    def __init__(self, platform: InstalledPlatform, namespace: str, *, senders: str = "") -> None:
        self.platform = platform
        self.client = platform.client
        self.namespace = namespace
        self._senders = senders or namespace

    def source(self, name: str) -> str:
        return f"{self.namespace}.{name}.delayed"

    def target(self, name: str) -> str:
        return f"{self.namespace}.{name}"

    def document(self, name: str, **spec: Any) -> Object:
        """A DelayTopic of three lines, and further fields of its spec."""
        return {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayTopic",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"source": {"topic": self.source(name)}, "target": {"topic": self.target(name)}, **spec},
        }

    def apply(self, name: str, **spec: Any) -> None:
        """Apply a document; what was applied before and is not given now is taken back, as GitOps tools do."""
        self.platform.kubectl.apply([self.document(name, **spec)])

    def let_developers_in(self) -> None:
        """Give the group `<namespace>:developers` the cluster's role edit in the namespace."""
        group = f"--group={self.namespace}:developers"
        self.platform.kubectl("create", "rolebinding", "developers", "--clusterrole=edit", group, "-n", self.namespace)

    def as_developer(self, *arguments: str, given: str = "") -> str:
        """Return what kubectl answers a developer of the team: its output, or the error that it shows."""
        identity = ("--as=somebody", f"--as-group={self.namespace}:developers", "--as-group=system:authenticated")
        result = self.platform.kubectl.run(*identity, *arguments, given=given)
        return result.stdout if result.returncode == 0 else result.stderr

    def path(self, name: str) -> str:
        return f"{API}/namespaces/{self.namespace}/delaytopics/{name}"

    def topic(self, name: str) -> Object:
        return self.client.get(self.path(name))

    def await_condition(
        self, name: str, type: str, status: str = "True", *, reason: str = "", seconds: float = 90.0
    ) -> Object:
        return await_condition(self.client, self.path(name), type, status, reason=reason, seconds=seconds)

    def await_ready(self, *names: str) -> None:
        for name in names:
            self.await_condition(name, "Ready", seconds=120)

    def await_pending(self, name: str, count: int, seconds: float = 60.0) -> None:
        """Until the status counts so many records that were taken in and wait."""

        def holds(found: Object | None) -> bool:
            return bool((found or {}).get("status", {}).get("backlog", {}).get("pending") == count)

        await_object(self.client, self.path(name), holds, seconds=seconds)

    def await_backlog(self, name: str, count: int, seconds: float = 60.0) -> None:
        """Until the status counts at least so many records that wait."""

        def holds(found: Object | None) -> bool:
            return bool((found or {}).get("status", {}).get("backlog", {}).get("pending", 0) >= count)

        await_object(self.client, self.path(name), holds, seconds=seconds)

    def delete(self, name: str) -> None:
        self.client.delete(self.path(name))

    def await_gone(self, name: str, seconds: float = 90.0) -> None:
        await_gone(self.client, self.path(name), seconds=seconds)

    def leave(self) -> None:
        """Its DelayTopics go, and their relays once nothing is pending; nobody waits for it."""
        if self.client.find(f"/api/v1/namespaces/{self.namespace}") is not None:
            self.client.delete(f"/api/v1/namespaces/{self.namespace}")

    def start_sending(self, name: str, plan: Plan) -> Sending:
        """The pod runs when this returns."""
        pod = self.start_pod("sender", self.source(name), plan.encode())
        pod.await_running()
        return Sending(self, name, plan, pod)

    def send(self, name: str, plan: Plan) -> Sending:
        """Everything was sent and acknowledged when this returns."""
        sending = self.start_sending(name, plan)
        sending.await_sent()
        return sending

    def start_pod(self, program: str, *arguments: str) -> PodRun:
        """Of the programs that send and read."""
        name = f"{program}-{secrets.token_hex(4)}"
        command = ["python", "-m", f"{PROGRAMS}.{program}", self.platform.bootstrap_servers, *arguments]
        return start_pod(self.client, self._senders, name, self.platform.images["traffic"], command)


class Sending:
    """One run of the sender."""

    def __init__(self, team: Team, name: str, plan: Plan, pod: PodRun) -> None:
        self.plan = plan
        self._team = team
        self._name = name
        self._pod = pod
        self._said: dict[str, Any] = {}

    def await_sent(self) -> dict[str, Any]:
        """Return the sender's result once everything is acknowledged: begin, end, and when the last one is due."""
        if not self._said:
            seconds = self.plan.records / self.plan.per_second if self.plan.per_second else 0
            self._said = self._pod.message(POD_SECONDS + seconds + 300)
        return self._said

    @property
    def last_due_ms(self) -> int:
        """Return when the last record is due."""
        return int(self.await_sent()["last_due_ms"])

    def start_reading(self, *, settle_ms: int = 2_000, patience_s: int = 60, quiet_s: int = 3) -> Reading:
        """Let the independent reader look on from now on, while records are still sent."""
        source, target = self._team.source(self._name), self._team.target(self._name)
        work = Work(Expected(source, target, self.plan.run, self.plan.records, settle_ms), patience_s, quiet_s)
        pod = self._team.start_pod("reader", work.encode())
        pod.await_running()
        return Reading(self, pod, POD_SECONDS + patience_s + 600)

    def verdict(
        self, *, settle_ms: int = 2_000, patience_s: int = 60, quiet_s: int = 3, besides: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the reader's result once everything has come, and nothing more; it starts when everything was sent.

        Raises PromiseBroken for a fault that is not among `besides`.
        """
        self.await_sent()
        return self.start_reading(settle_ms=settle_ms, patience_s=patience_s, quiet_s=quiet_s).verdict(besides)


class Reading(NamedTuple):
    """One run of the reader, and for how long it may take."""

    sending: Sending
    pod: PodRun
    seconds: float

    def verdict(self, besides: Collection[str] = ()) -> dict[str, Any]:
        """Return what it says at the end. Raises PromiseBroken for a fault that is not among `besides`."""
        self.sending.await_sent()
        verdict = self.pod.message(self.seconds)
        require_kept(verdict, besides)
        return verdict


MakeTeam = Callable[[str], Team]
"""From the stem of the namespace's name."""
