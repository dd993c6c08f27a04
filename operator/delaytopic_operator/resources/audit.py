"""The objects that audit a DelayTopic on a schedule: a ConfigMap with its documents, and a CronJob."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final

import yaml

from delaytopic_api.documents import DEFAULT_CLASS_ANNOTATION, DelayClass, DelayTopic, Model, Settings
from delaytopic_api.errors import Refused
from delaytopic_api.values import Quantity
from delaytopic_operator.config import AuditConfig, OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.children import relay_problems, with_inherited
from delaytopic_operator.resources.connection_files import SecretFile, connection_files
from delaytopic_operator.resources.executors import (
    BLOCK_MANAGER_PORT,
    DRIVER_PORT,
    audit_of_class,
    driver_variables,
    executor_pod,
    has_executors,
    master_of,
)
from delaytopic_operator.resources.identity import (
    AUDIT,
    Document,
    RelayIdentity,
    audit_name,
    metadata,
    pod_labels,
    stamped,
)
from delaytopic_operator.resources.network_policy import audit_network_policy
from delaytopic_operator.resources.pod import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    TEMPORARY_FOLDER,
    config_volume,
    container_security,
    mount,
    pod_spec,
    secret_mounts,
    secret_volumes,
    temporary_volume,
)

DOCUMENTS_KEY: Final = "documents.yaml"
EXECUTOR_KEY: Final = "executor.yaml"

_NOT_AUDITED = ("relay", "relayNamespace", "autoscaling", "audit")
"""The fields about pods: an audit does not read them, and they change often."""
DOCUMENTS_FOLDER: Final = "/etc/delaytopic/audit"
LEDGER_FOLDER: Final = "/var/lib/delaytopic"
REPORTS_FOLDER: Final = "reports"
STATUS_FILE: Final = "/dev/termination-log"
"""The kubelet puts its content, up to 4096 bytes, into the status of the pod: the verdict reaches the operator although
the audit has no right to speak to the API server."""
TEMPORARY_SIZE: Final = "10Gi"
LATE_START_SECONDS: Final = 600
LONGEST_RUN_SECONDS: Final = 3_600
RETRIES: Final = 2
KEPT_RUNS: Final = 3
DEFAULT_HEAP_MIB: Final = 1_024
IMAGE_GROUP: Final = 65_532
"""So that the process can write to a volume that belongs to root."""


def audit_documents_name(identity: RelayIdentity) -> str:
    """Return what the ConfigMap is called."""
    return f"{identity.child}-audit"


def audit_config_map(
    identity: RelayIdentity, topic: DelayTopic, delay_class: DelayClass | None, executor: Document | None = None
) -> Document:
    """In `documents.yaml` the DelayTopic, and the DelayClass if it has one; in `executor.yaml` the template of
    executor pods, if there are to be any.
    """
    documents: list[Document] = [_document(topic, {"name": topic.metadata.name, "namespace": topic.metadata.namespace})]
    if delay_class is not None:
        of_class: Document = {"name": delay_class.metadata.name}
        if delay_class.is_default:
            of_class["annotations"] = {DEFAULT_CLASS_ANNOTATION: "true"}
        documents.append(_document(delay_class, of_class))
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(identity, audit_documents_name(identity), AUDIT),
        "data": {DOCUMENTS_KEY: _yaml(documents), **({EXECUTOR_KEY: _yaml([executor])} if executor else {})},
    }


def _yaml(documents: list[Document]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120)


def _document(document: DelayTopic | DelayClass, named: Document) -> Document:
    """Return it as its author wrote it: an audit of another release has other defaults, and knows fewer fields."""
    spec = {field: value for field, value in _written(document.spec).items() if field not in _NOT_AUDITED}
    return {"apiVersion": document.api_version.value, "kind": document.kind, "metadata": named, "spec": spec}


def _written(model: Model) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def audit_cron_job(identity: RelayIdentity, pod: Document, config: OperatorConfig) -> Document:
    """Runs `delaytopic slo run` in such pods on `audit.schedule`, which must be set.

    A missed objective is a result, with exit code 0; only a run without a verdict fails, and is tried again.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata(identity, audit_name(identity.key), AUDIT),
        "spec": {
            "schedule": spread_schedule(config.audit.schedule or "", identity.key),
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": LATE_START_SECONDS,
            "successfulJobsHistoryLimit": KEPT_RUNS,
            "failedJobsHistoryLimit": KEPT_RUNS,
            "jobTemplate": {
                "metadata": {"labels": pod_labels(identity, AUDIT)},
                "spec": {
                    "activeDeadlineSeconds": LONGEST_RUN_SECONDS,
                    "backoffLimit": RETRIES,
                    # A ledger takes one run at a time.
                    "podReplacementPolicy": "Failed",
                    "template": {"metadata": {"labels": pod_labels(identity, AUDIT)}, "spec": pod},
                },
            },
        },
    }


def report_address(key: Key, audit: AuditConfig, told: str | None) -> str | None:
    """Return where people find the report that an audit says it has written; None: it was gone with the pod."""
    if told is None or audit.reports_url is None:
        return told if audit.volume is not None or _is_url(audit) else None
    return f"{audit.reports_url.rstrip('/')}/{key.namespace}.{key.name}/report.html"


def spread_schedule(schedule: str, key: Key) -> str:
    """The cron line with `H` replaced, as the minute or the hour, by a number that follows from the DelayTopic's name.

    So a thousand audits on `H * * * *` do not begin at once.
    """
    number = int(sha256(str(key).encode()).hexdigest(), 16)
    fields = schedule.split()
    for place, values in enumerate((60, 24)):
        if place < len(fields):
            fields[place] = re.sub(r"\bH\b", str(number % values), fields[place])
    return " ".join(fields)


def audit_pod(identity: RelayIdentity, kafka_files: tuple[SecretFile, ...], config: OperatorConfig) -> Document:
    """Return the spec of the pod of an audit."""
    audit = config.audit
    volumes = [
        config_volume("config", identity.child),
        config_volume("audit", audit_documents_name(identity)),
        temporary_volume(TEMPORARY_SIZE),
        *secret_volumes(kafka_files),
    ]
    account = (audit.driver_account if has_executors(audit) else audit.service_account) or identity.child
    spec = pod_spec(config, account, _container(identity, kafka_files, config), volumes)
    if audit.volume is not None:
        volumes.append({"name": "ledger", **audit.volume})
        spec["securityContext"] |= {"fsGroup": IMAGE_GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    return {**spec, "automountServiceAccountToken": has_executors(audit), "restartPolicy": "Never"}


def _container(identity: RelayIdentity, kafka_files: tuple[SecretFile, ...], config: OperatorConfig) -> Document:
    audit = config.audit
    mounts = [
        mount("config", CONFIG_FOLDER),
        mount("audit", DOCUMENTS_FOLDER),
        mount("tmp", TEMPORARY_FOLDER, writable=True),
        *secret_mounts(kafka_files),
    ]
    if audit.volume is not None:
        mounts += _ledger_mounts(identity.key, audit)
    container = {
        "name": "audit",
        "image": config.images.audit,
        "imagePullPolicy": config.images.pull_policy,
        "command": ["delaytopic"],
        "args": _arguments(identity.key, audit),
        # Spark writes beside where it is started, and into the home of its user.
        "workingDir": TEMPORARY_FOLDER,
        "env": [{"name": "HOME", "value": TEMPORARY_FOLDER}, {"name": "SPARK_LOCAL_DIRS", "value": TEMPORARY_FOLDER}],
        "resources": {field: dict(quantities) for field, quantities in audit.resources.items()},
        "terminationMessagePath": STATUS_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
        "volumeMounts": mounts,
    }
    if audit.credentials_secret is not None:
        container["envFrom"] = [{"secretRef": {"name": audit.credentials_secret}}]
    if has_executors(audit):
        container["env"] = [*container["env"], *driver_variables()]
        container["ports"] = [{"containerPort": port} for port in (DRIVER_PORT, BLOCK_MANAGER_PORT)]
    return container


def _ledger_mounts(key: Key, audit: AuditConfig) -> list[Document]:
    """Of the volume that all audits share, only what is this DelayTopic's: no audit can change what others found."""
    own = f"{key.namespace}.{key.name}"
    folders = [REPORTS_FOLDER] if _is_url(audit) else [REPORTS_FOLDER, _ledger_folder(audit)]
    return [
        {**mount("ledger", f"{LEDGER_FOLDER}/{folder}/{own}", writable=True), "subPath": f"{folder}/{own}"}
        for folder in folders
    ]


def _arguments(key: Key, audit: AuditConfig) -> list[str]:
    options = {
        "--file": f"{DOCUMENTS_FOLDER}/{DOCUMENTS_KEY}",
        "--name": str(key),
        "--relay-config": CONFIG_FILE,
        "--ledger": _ledger(audit),
        "--output": f"{LEDGER_FOLDER if audit.volume is not None else _ledger(audit).rstrip('/')}/{REPORTS_FOLDER}",
        "--master": master_of(audit),
        "--memory": f"{_heap_mib(audit)}m",
        "--status-file": STATUS_FILE,
    }
    if has_executors(audit):
        options |= {
            "--executor-pod": f"{DOCUMENTS_FOLDER}/{EXECUTOR_KEY}",
            "--min-executors": str(audit.executors.min),
            "--max-executors": str(audit.executors.max),
        }
    conf = (word for name, value in sorted(audit.conf.items()) for word in ("--conf", f"{name}={value}"))
    return ["slo", "run", *(word for option in options.items() for word in option), *conf, "--exit-zero"]


def _ledger(audit: AuditConfig) -> str:
    if _is_url(audit):
        return audit.ledger or ""
    # Executors mount the volume, too: as a URL it says so.
    return f"{'file://' if has_executors(audit) else ''}{LEDGER_FOLDER}/{_ledger_folder(audit)}"


def _ledger_folder(audit: AuditConfig) -> str:
    return (audit.ledger or "ledger").strip("/")


def _is_url(audit: AuditConfig) -> bool:
    return "://" in (audit.ledger or "")


def _heap_mib(audit: AuditConfig) -> int:
    """Half of the container's memory; the rest is for Python, which reads Kafka, and for what Java takes beside."""
    limit = audit.resources.get("limits", {}).get("memory")
    return max(512, Quantity.of(limit).value // (2 << 20)) if limit is not None else DEFAULT_HEAP_MIB


def audit_children(
    topic: DelayTopic,
    delay_class: DelayClass | None,
    settings: Settings,
    identity: RelayIdentity,
    config: OperatorConfig,
) -> list[Document]:
    """The documents to apply beside those of `children`, whose ServiceAccount and ConfigMap they use; in this order.

    None when the operator is configured without audits. Raises `Refused` where `children` does.
    """
    if config.audit.schedule is None:
        return []
    if problems := relay_problems(settings, topic.spec.relay, delay_class.spec.relay if delay_class else None):
        raise Refused(problems)
    identity = with_inherited(identity, topic.metadata, config)
    audit = audit_of_class(config.audit, delay_class.spec.audit) if delay_class is not None else config.audit
    config = config.model_copy(update={"audit": audit})
    pod = audit_pod(identity, tuple(connection_files(settings).kafka_files), config)
    executor = executor_pod(identity, pod, audit, LONGEST_RUN_SECONDS) if has_executors(audit) else None
    documents = [audit_config_map(identity, topic, delay_class, executor)]
    if config.network_policy == "Create":
        ports = (DRIVER_PORT, BLOCK_MANAGER_PORT) if has_executors(audit) else ()
        documents.append(audit_network_policy(identity, ports))
    documents.append(audit_cron_job(identity, pod, config))
    return [stamped(each) for each in documents]
