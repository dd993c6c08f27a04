"""Tests of what Spark is told of executors that are pods."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_audit.errors import SettingsError
from delaytopic_audit.runtime.executor_pods import DriverPod, ExecutorPods, executor_settings

DRIVER = DriverPod("audit-1-x", "delay-relays", "10.1.2.3")
RESOURCES = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}


def settings(resources: dict[str, Any] | None = None, **container: Any) -> dict[str, str]:
    executor = {"name": "executor", "image": "registry/audit:1", "resources": resources, **container}
    return executor_settings(ExecutorPods("/etc/executor.yaml", {"spec": {"containers": [executor]}}, 1, 4), DRIVER)


def sizes(resources: dict[str, Any] | None) -> tuple[str, ...]:
    """Return slots, heap, other memory and processors asked for."""
    found = settings(resources)
    names = ("executor.cores", "executor.memory", "executor.memoryOverhead", "kubernetes.executor.request.cores")
    return tuple(found[f"spark.{name}"] for name in names)


def test_the_settings_of_a_driver_in_its_pod() -> None:
    assert settings(RESOURCES, imagePullPolicy="Always") == {
        "spark.kubernetes.namespace": "delay-relays",
        "spark.kubernetes.driver.pod.name": "audit-1-x",
        "spark.driver.host": "10.1.2.3",
        "spark.driver.port": "7078",
        "spark.driver.blockManager.port": "7079",
        "spark.blockManager.port": "7079",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
        "spark.kubernetes.container.image": "registry/audit:1",
        "spark.kubernetes.container.image.pullPolicy": "Always",
        "spark.kubernetes.executor.podTemplateFile": "/etc/executor.yaml",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.executor.request.cores": "2",
        "spark.executor.cores": "2",
        "spark.executor.memory": "2048m",
        "spark.executor.memoryOverhead": "2048m",
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "1",
        "spark.dynamicAllocation.initialExecutors": "1",
        "spark.dynamicAllocation.maxExecutors": "4",
        "spark.default.parallelism": "8",
        "spark.sql.shuffle.partitions": "32",
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        (None, ("1", "1024m", "1024m", "1")),
        ({"requests": {"cpu": "500m"}}, ("1", "1024m", "1024m", "500m")),
        ({"requests": {"cpu": 1.5, "memory": "1Gi"}}, ("1", "512m", "512m", "1.5")),
        ({"requests": {"cpu": "4"}, "limits": {"memory": "512Mi"}}, ("4", "480m", "32m", "4")),
    ],
)
def test_a_slot_is_a_whole_processor_that_is_requested_and_there_is_always_one(
    resources: dict[str, Any] | None, expected: tuple[str, ...]
) -> None:
    assert sizes(resources) == expected


def test_a_limit_of_processors_is_handed_on_where_there_is_one() -> None:
    limited = settings({**RESOURCES, "limits": {"cpu": "3", "memory": "4Gi"}})

    assert {name: value for name, value in limited.items() if name not in settings(RESOURCES)} == {
        "spark.kubernetes.executor.limit.cores": "3"
    }


@pytest.mark.parametrize("template", [{}, {"spec": None}, {"spec": {"containers": [{"name": "executor"}]}}])
def test_a_template_without_a_container_and_its_image_is_refused(template: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="must begin with the executor's container and its image"):
        executor_settings(ExecutorPods("f", template, 1, 1), DRIVER)


def test_a_driver_that_does_not_know_its_pod_is_told_what_is_missing() -> None:
    known = {"POD_NAME": "audit-1-x", "POD_NAMESPACE": "delay-relays", "POD_IP": "10.1.2.3"}

    assert DriverPod.of(known) == DRIVER
    with pytest.raises(SettingsError, match="POD_NAME, POD_IP must be in the environment"):
        DriverPod.of({"POD_NAMESPACE": "delay-relays", "POD_IP": ""})
