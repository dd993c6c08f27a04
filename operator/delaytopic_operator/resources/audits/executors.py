"""Executor pods of an audit in mode Kubernetes: how many, and the template that the driver makes them from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from delaytopic_api.documents import AuditTemplate
from delaytopic_api.values import AuditMode
from delaytopic_operator.config import AuditConfig
from delaytopic_operator.resources.identity import Document
from delaytopic_operator.resources.pod import TEMPORARY_FOLDER

API_SERVER: Final = "k8s://https://kubernetes.default.svc"
DRIVER_PORT: Final = 7_078
BLOCK_MANAGER_PORT: Final = 7_079
"""Ports that the audit has Spark listen on, and that the NetworkPolicy lets in."""
LOCAL_VOLUME: Final = "spark-local-dir-tmp"
"""The volume of temporary files, by a name that tells Spark to keep its own there and to make no other."""
_LAUNCHER: Final = ("python3", "-m", "delaytopic_audit.runtime.executor")
_OF_DRIVER: Final = ("config", "audit")
"""Volumes that the driver alone reads."""
_ALIKE: Final = ("image", "imagePullPolicy", "workingDir", "securityContext", "envFrom")
_DRIVER_FACTS: Final = {
    "POD_NAME": "metadata.name",
    "POD_NAMESPACE": "metadata.namespace",
    "POD_IP": "status.podIP",
}


def audit_of_class(audit: AuditConfig, template: AuditTemplate) -> AuditConfig:
    """Return the operator's settings with what the class says of its audits.

    A mode that the operator has no account for is left out: the class's status says so.
    """
    executors = template.executors
    # A bound that nobody wrote gives way to one that somebody did.
    least = executors.min or min(audit.executors.min, executors.max or audit.executors.min)
    of_class = {
        "min": least,
        "max": executors.max or max(audit.executors.max, least),
        "resources": executors.resources.as_container() or audit.executors.resources,
    }
    return audit.model_copy(
        update={
            "mode": template.mode if template.mode and audit.driver_account else audit.mode,
            "executors": audit.executors.model_copy(update=of_class),
            "tables": template.tables or audit.tables,
            "resources": template.resources.as_container() or audit.resources,
            "spark_conf": audit.spark_conf | template.spark_conf,
        }
    )


def has_executors(audit: AuditConfig) -> bool:
    """Tell whether audits ask for executor pods."""
    return audit.mode is AuditMode.KUBERNETES


def master_of(audit: AuditConfig) -> str:
    """Return Spark's master: with executor pods the API server, by the address that pods know or by the given one."""
    return audit.master if not has_executors(audit) or audit.master.startswith("k8s://") else API_SERVER


def driver_variables() -> list[Document]:
    """Return what the driver has to know of its own pod."""
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in _DRIVER_FACTS.items()]


def executor_pod(
    labels: Mapping[str, str], account: str, driver: Document, audit: AuditConfig, longest_seconds: int
) -> Document:
    """Return the template: a pod as restricted as the driver's, with its Secrets, and without its token.

    `labels` are those of the driver's pod, `driver` is its spec. Spark adds name, owner, environment and argument.
    """
    (container,) = driver["containers"]
    executor = {
        "name": "executor",
        "command": list(_LAUNCHER),
        **{field: container[field] for field in _ALIKE if field in container},
        "env": [{"name": "HOME", "value": TEMPORARY_FOLDER}],
        "resources": {field: dict(quantities) for field, quantities in audit.executors.resources.items()},
        "volumeMounts": _of_executors(container["volumeMounts"]),
    }
    spec = {
        **driver,
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "activeDeadlineSeconds": longest_seconds,
        "containers": [executor],
        "volumes": _of_executors(driver["volumes"]),
    }
    # Without the label by which the operator knows what it made: an executor has no verdict to tell.
    told = {name: value for name, value in labels.items() if name != "app.kubernetes.io/managed-by"}
    told["app.kubernetes.io/component"] = "audit-executor"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": told}, "spec": spec}


def _of_executors(named: list[Document]) -> list[Document]:
    """Return volumes, or mounts of them, without the driver's own."""
    local = {"tmp": LOCAL_VOLUME}
    return [{**each, "name": local.get(each["name"], each["name"])} for each in named if each["name"] not in _OF_DRIVER]
