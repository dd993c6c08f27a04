"""The Deployment of relays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delaytopic_api.relay import RelayConfig
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.kube_cluster import marks_in, member_name
from delaytopic_operator.resources.connection_files import SecretFile
from delaytopic_operator.resources.identity import (
    CONFIG_HASH,
    Document,
    RelayIdentity,
    config_hash,
    config_name,
    metadata,
    pod_labels,
    selector,
)
from delaytopic_operator.resources.pod import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    CONFIG_VOLUME,
    TEMPORARY_FOLDER,
    config_volume,
    container_security,
    mount,
    pod_spec,
    secret_mounts,
    secret_volumes,
    temporary_volume,
)
from delaytopic_operator.resources.template import PodTemplate

SETTLING_SECONDS: Final = 10
"""A relay counts as available so long after it joined the group: its shards have come to it by then, and the next
relay leaves into a group at rest."""
GRACE_MARGIN_SECONDS: Final = 10
"""The time between what a relay may take to hand over and the kubelet's SIGKILL."""
OLD_REPLICA_SETS: Final = 2
TEMPORARY_SIZE: Final = "64Mi"
RELAY_NAME: Final = "DELAYTOPIC_RELAY_NAME"
"""The variable that tells a relay its name in its group."""
POD_NAME: Final = "POD_NAME"
"""The variable that the name is made of, where it says which Kubernetes cluster the pod is in."""

_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}
"""New relays come before old ones go: there are never fewer than wanted, and a single relay does not leave its shards
to nobody for as long as a pod takes to start. (A relay that gets no shard, as there are more relays than shards for a
while, is ready all the same.) Each one that joins or leaves is a rebalance, which costs every member a tick: a quarter
at a time, their coming and going falls together."""


@dataclass(frozen=True, slots=True)
class RelayPods:
    """The parts of the relays' pods."""

    image: str
    resources: Document
    template: PodTemplate
    files: tuple[SecretFile, ...]
    secrets_version: str


def image_of(deployment: Mapping[str, Any]) -> str:
    """Return the image of the relays of a Deployment; empty for one that holds none."""
    containers = deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("image", ""))


def kube_cluster_of(deployment: Mapping[str, Any] | None) -> str | None:
    """Return the mark of the Kubernetes cluster that relays of a Deployment are named with; None without one."""
    containers = (deployment or {}).get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    names = [str(each.get("value", "")) for each in containers[0].get("env") or () if each.get("name") == RELAY_NAME]
    return next(iter(marks_in(names)), None)


def deployment(
    identity: RelayIdentity, relay: RelayConfig, pods: RelayPods, config: OperatorConfig, replicas: int | None
) -> Document:
    """Relays on pods that nothing but a change of what they read at start makes anew.

    Without `replicas` their number is left to others.
    """
    spec: Document = {
        "replicas": replicas,
        "revisionHistoryLimit": OLD_REPLICA_SETS,
        "minReadySeconds": SETTLING_SECONDS,
        "strategy": _STRATEGY,
        "selector": {"matchLabels": selector(identity.key)},
        "template": _pod(identity, relay, pods, config),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(identity, identity.relays_name),
        "spec": {field: value for field, value in spec.items() if value is not None},
    }


def _pod(identity: RelayIdentity, relay: RelayConfig, pods: RelayPods, config: OperatorConfig) -> Document:
    name, template = identity.relays_name, pods.template
    volumes = [
        config_volume(CONFIG_VOLUME, config_name(identity, relay)),
        temporary_volume(TEMPORARY_SIZE),
        *secret_volumes(pods.files),
    ]
    grace_seconds = -(-relay.limits.shutdown_grace.ms // 1000) + GRACE_MARGIN_SECONDS
    spec = {
        **pod_spec(config, name, _container(identity, relay, pods, config), volumes),
        "terminationGracePeriodSeconds": grace_seconds,
        **template.spec,
        "topologySpreadConstraints": _spread(identity, template),
    }
    return {
        "metadata": {
            "labels": {**template.labels, **pod_labels(identity)},
            "annotations": {
                **identity.annotations,
                **template.annotations,
                CONFIG_HASH: config_hash(relay, pods.secrets_version),
            },
        },
        "spec": {field: value for field, value in spec.items() if value != []},
    }


def _container(identity: RelayIdentity, relay: RelayConfig, pods: RelayPods, config: OperatorConfig) -> Document:
    return {
        "name": "relay",
        "image": pods.image,
        "imagePullPolicy": config.images.pull_policy,
        "command": ["delaytopic-relay"],
        "args": ["--config", CONFIG_FILE],
        "env": _own_name(identity),
        "ports": [{"name": "http", "containerPort": relay.http.port, "protocol": "TCP"}],
        "resources": pods.resources,
        "startupProbe": _probe("/healthz", period_s=1, failures=60),
        "livenessProbe": _probe("/healthz", period_s=10, failures=3),
        "readinessProbe": _probe("/readyz", period_s=5, failures=3),
        # The last line of a relay that gives up says what to change.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
        "volumeMounts": [
            mount(CONFIG_VOLUME, CONFIG_FOLDER),
            mount("tmp", TEMPORARY_FOLDER, writable=True),
            *secret_mounts(pods.files),
        ],
    }


def _probe(path: str, *, period_s: int, failures: int) -> Document:
    """The pages answer from a thread of their own, also while the relay waits for Kafka."""
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period_s,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _spread(identity: RelayIdentity, template: PodTemplate) -> list[Document]:
    """Over zones and hosts, where nothing else is asked for; as far as there is room, since late is better than lost.

    A constraint without selector means the relays of the same DelayTopic.
    """
    softly = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["pod-template-hash"]}
    default = [{**softly, "topologyKey": key} for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")]
    constraints = template.spec.get("topologySpreadConstraints", default)
    return [{"labelSelector": {"matchLabels": selector(identity.key)}, **constraint} for constraint in constraints]


def _own_name(identity: RelayIdentity) -> list[Document]:
    """Return the environment that names a relay: as its pod, in each of its lives, and as in no other cluster."""
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    if identity.kube_cluster is None:
        return [{"name": RELAY_NAME, "valueFrom": source}]
    name = member_name(f"$({POD_NAME})", identity.kube_cluster)
    return [{"name": POD_NAME, "valueFrom": source}, {"name": RELAY_NAME, "value": name}]
