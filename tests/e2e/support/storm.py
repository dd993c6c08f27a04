"""Pods killed at random moments: when and whom follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from playground.cluster.clusters import Cluster
from playground.cluster.errors import CommandFailed, NotPossible
from playground.kube.kube_client import KubeClient, Object, RequestRefused
from playground.kube.pods import pods_of
from playground.platform.moments import await_moment


class Strike(NamedTuple):
    """One kill, so long after the storm began."""

    at_ms: int
    victim: str


@dataclass(frozen=True)
class Victim:
    """Pods of which one is killed at a time."""

    namespace: str
    labels: Mapping[str, str]


def storm(seed: int, duration_ms: int, kills: Mapping[str, int]) -> list[Strike]:
    """Return kills of each victim, each somewhere in a part of the storm of its own, in the order of time. Pure."""
    rng = random.Random(seed)
    strikes = [
        Strike(int((number + rng.random()) * duration_ms / count), victim)
        for victim, count in kills.items()
        for number in range(count)
    ]
    return sorted(strikes)


def strike_all(
    client: KubeClient,
    cluster: Cluster,
    start_ms: int,
    strikes: Sequence[Strike],
    victims: Mapping[str, Victim],
    seed: int,
) -> list[str]:
    """Kill them at their moments; the names of the pods that were killed, which may be fewer where none ran."""
    rng = random.Random(seed)
    killed = []
    for strike in strikes:
        await_moment(start_ms + strike.at_ms)
        victim = victims[strike.victim]
        living = [pod for pod in pods_of(client, victim.namespace, **victim.labels) if is_running(pod)]
        if living:
            pod = rng.choice(living)
            kill(client, cluster, pod)
            killed.append(f"{strike.victim}/{pod['metadata']['name']}")
    return killed


def kill(client: KubeClient, cluster: Cluster, pod: Object) -> None:
    """SIGKILL, where one may do that on the node; then the pod goes, so that another one comes at once."""
    with suppress(CommandFailed, NotPossible):
        crash(cluster, pod)  # it has ended by itself; or the node is out of reach, and only the API is left
    metadata = pod["metadata"]
    with suppress(RequestRefused):  # it is gone
        client.delete(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}", gracePeriodSeconds=0)


def crash(cluster: Cluster, pod: Object) -> None:
    """SIGKILL to the pod's containers, which are started again in it. Raises CommandFailed and NotPossible."""
    for container in pod["status"].get("containerStatuses", []):
        task = container.get("containerID", "").partition("://")[2]
        cluster.exec_on_node("ctr", "--namespace=k8s.io", "task", "kill", "--signal=SIGKILL", task)


def is_running(pod: Object) -> bool:
    """Return whether it runs and nobody has asked it to end."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
