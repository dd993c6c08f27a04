"""Spark's settings for executors that are pods: from the template of these and the driver's own pod. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delaytopic_api.values import Quantity
from delaytopic_audit.errors import SettingsError

DRIVER_PORT: Final = 7_078
BLOCK_MANAGER_PORT: Final = 7_079
"""Fixed, as the NetworkPolicy of audits names them."""
DEFAULT_MEMORY: Final = "2Gi"
SMALLEST_HEAP_MIB: Final = 480
"""Spark refuses executors with less than 450 MiB."""
TASKS_OF_A_SLOT: Final = 4
_VARIABLES: Final = ("POD_NAME", "POD_NAMESPACE", "POD_IP")


@dataclass(frozen=True)
class DriverPod:
    """The pod of the driver, which executors connect to, and with which they go."""

    name: str
    namespace: str
    ip: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> DriverPod:
        """Return the pod as the downward API tells it; raises SettingsError."""
        if missing := [name for name in _VARIABLES if not environment.get(name)]:
            raise SettingsError(f"--executor-pod: {', '.join(missing)} must be in the environment of the driver's pod")
        return cls(*(environment[name] for name in _VARIABLES))


@dataclass(frozen=True)
class ExecutorPods:
    """Executor pods: where their template is and what it says, and their number."""

    file: str
    template: Mapping[str, Any]
    least: int
    most: int


def executor_settings(pods: ExecutorPods, driver: DriverPod) -> dict[str, str]:
    """Return the settings of a driver in client mode; raises SettingsError for a template without a container.

    Spark takes image, processors and memory from settings alone, and writes them over the template's.
    """
    container = _container(pods.template)
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    cpu, heap_mib, other_mib = str(requests.get("cpu", 1)), *_memory_mib(requests, limits)
    # A task needs a slot: half a processor still runs one.
    slots = max(1, int(Quantity.of(cpu).exact))
    return {
        "spark.kubernetes.namespace": driver.namespace,
        # Executors belong to it: when it is deleted, Kubernetes removes them.
        "spark.kubernetes.driver.pod.name": driver.name,
        "spark.driver.host": driver.ip,
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.blockManager.port": str(BLOCK_MANAGER_PORT),
        # Whoever reaches the ports has to know the secret of this run.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.kubernetes.container.image": str(container["image"]),
        "spark.kubernetes.container.image.pullPolicy": str(container.get("imagePullPolicy", "IfNotPresent")),
        "spark.kubernetes.executor.podTemplateFile": pods.file,
        # Of objects, Spark makes and removes pods alone: no right on others is needed.
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.request.cores": cpu,
        **({"spark.kubernetes.executor.limit.cores": str(limits["cpu"])} if "cpu" in limits else {}),
        "spark.executor.cores": str(slots),
        "spark.executor.memory": f"{heap_mib}m",
        "spark.executor.memoryOverhead": f"{other_mib}m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(pods.least),
        "spark.dynamicAllocation.initialExecutors": str(pods.least),
        "spark.dynamicAllocation.maxExecutors": str(pods.most),
        # What is read is cut for all executors that there may be: they come while tasks wait.
        "spark.default.parallelism": str(slots * pods.most),
        "spark.sql.shuffle.partitions": str(TASKS_OF_A_SLOT * slots * pods.most),
    }


def _container(template: Mapping[str, Any]) -> Mapping[str, Any]:
    containers = (template.get("spec") or {}).get("containers") or []
    if not containers or "image" not in containers[0]:
        raise SettingsError("--executor-pod: spec.containers must begin with the executor's container and its image")
    first: Mapping[str, Any] = containers[0]
    return first


def _memory_mib(requests: Mapping[str, Any], limits: Mapping[str, Any]) -> tuple[int, int]:
    """Return the memory of Java's heap, half of all, and the rest: for Python, and for what Java takes beside."""
    total_mib = Quantity.of(limits.get("memory", requests.get("memory", DEFAULT_MEMORY))).value >> 20
    heap_mib = max(SMALLEST_HEAP_MIB, total_mib // 2)
    return heap_mib, max(0, total_mib - heap_mib)
