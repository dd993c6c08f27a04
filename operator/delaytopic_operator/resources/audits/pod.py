"""The common parts of pods that audit: the container, the documents that it reads, and its places. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from delaytopic_api.documents import DelayClass, DelayTopic, Model
from delaytopic_api.values import AuditTables, Quantity
from delaytopic_operator.config import AuditConfig, OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.connection_files import SecretFile
from delaytopic_operator.resources.identity import Document
from delaytopic_operator.resources.pod import (
    CONFIG_FOLDER,
    TEMPORARY_FOLDER,
    container_security,
    mount,
    pod_spec,
    secret_mounts,
    secret_volumes,
    temporary_volume,
)

DOCUMENTS_FOLDER: Final = "/etc/delaytopic/audit"
LEDGER_FOLDER: Final = "/var/lib/delaytopic"
REPORTS_FOLDER: Final = "reports"
TABLES_FOLDER: Final = "tables"
TEMPORARY_SIZE: Final = "10Gi"
DEFAULT_HEAP_MIB: Final = 1_024
IMAGE_GROUP: Final = 65_532
"""The group that lets the process write to a volume that belongs to root."""
_NOT_AUDITED: Final = ("relay", "relayNamespace", "autoscaling", "audit")
"""The fields about pods: an audit does not read them, and they change often."""


def topic_document(topic: DelayTopic, of_class: DelayClass | None) -> Document:
    """Return the DelayTopic as far as an audit reads it; it names its class, whichever the default is by then."""
    document = _document(topic, {"name": topic.metadata.name, "namespace": topic.metadata.namespace})
    named = {"delayClassName": of_class.metadata.name} if of_class is not None else {}
    return {**document, "spec": {**document["spec"], **named}}


def class_document(of_class: DelayClass) -> Document:
    """Return the DelayClass as far as an audit reads it."""
    return _document(of_class, {"name": of_class.metadata.name})


def _document(document: DelayTopic | DelayClass, named: Document) -> Document:
    """Return it as its author wrote it: an audit of another release has other defaults, and knows fewer fields."""
    spec = {field: value for field, value in _written(document.spec).items() if field not in _NOT_AUDITED}
    return {"apiVersion": document.api_version.value, "kind": document.kind, "metadata": named, "spec": spec}


def _written(model: Model) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


def audit_container(
    config: OperatorConfig, arguments: Sequence[str], kafka_files: Iterable[SecretFile], ledger: Iterable[Document]
) -> Document:
    """Return the container that runs `delaytopic` with these arguments; `ledger` is where the volume is mounted."""
    audit = config.audit
    container: Document = {
        "name": "audit",
        "image": config.images.audit,
        "imagePullPolicy": config.images.pull_policy,
        "command": ["delaytopic"],
        "args": [*arguments],
        # Spark writes beside where it is started, and into the home of its user.
        "workingDir": TEMPORARY_FOLDER,
        "env": [{"name": "HOME", "value": TEMPORARY_FOLDER}, {"name": "SPARK_LOCAL_DIRS", "value": TEMPORARY_FOLDER}],
        "resources": {field: dict(quantities) for field, quantities in audit.resources.items()},
        "securityContext": container_security(),
        "volumeMounts": [
            mount("config", CONFIG_FOLDER),
            mount("audit", DOCUMENTS_FOLDER),
            mount("tmp", TEMPORARY_FOLDER, writable=True),
            *secret_mounts(kafka_files),
            *ledger,
        ],
    }
    if audit.credentials_secret is not None:
        container["envFrom"] = [{"secretRef": {"name": audit.credentials_secret}}]
    return container


def audit_pod(
    config: OperatorConfig,
    account: str,
    container: Document,
    kafka_files: Iterable[SecretFile],
    folders: Sequence[Document],
) -> Document:
    """Return the spec of a pod with this container; `folders` are the volumes with its configuration and documents."""
    audit = config.audit
    volumes = [*folders, temporary_volume(TEMPORARY_SIZE), *secret_volumes(kafka_files)]
    spec = pod_spec(config, account, container, volumes)
    if audit.volume is not None:
        volumes.append({"name": "ledger", **audit.volume})
        spec["securityContext"] |= {"fsGroup": IMAGE_GROUP, "fsGroupChangePolicy": "OnRootMismatch"}
    return spec


def common_options(audit: AuditConfig, master: str, ledger: str) -> dict[str, str]:
    """Return the options of `audit run` about the places of ledger and reports, and about Spark."""
    home = LEDGER_FOLDER if audit.volume is not None else (audit.ledger or "").rstrip("/")
    return {
        "--ledger": ledger,
        "--output": f"{home}/{REPORTS_FOLDER}",
        "--master": master,
        "--memory": f"{_heap_mib(audit)}m",
    }


def words_of(options: Mapping[str, str], audit: AuditConfig) -> list[str]:
    """Return the command line: these options, and Spark's settings."""
    conf = (word for name, value in sorted(audit.spark_conf.items()) for word in ("--conf", f"{name}={value}"))
    return ["audit", "run", *(word for option in options.items() for word in option), *conf, "--exit-zero"]


def publishes_tables(audit: AuditConfig) -> bool:
    """Tell whether audits publish tables."""
    return audit.tables is AuditTables.DELTA


def ledger_folder(audit: AuditConfig) -> str:
    """Return the ledger's path below its volume."""
    return (audit.ledger or "ledger").strip("/")


def ledger_mount(path: str) -> Document:
    """Return this part of the volume, for writing."""
    return {**mount("ledger", f"{LEDGER_FOLDER}/{path}", writable=True), "subPath": path}


def is_url(audit: AuditConfig) -> bool:
    """Tell whether the ledger is in a store."""
    return "://" in (audit.ledger or "")


def report_address(key: Key, audit: AuditConfig, told: str | None) -> str | None:
    """Return where people find the report that an audit says it has written; None: it was gone with the pod."""
    if told is None or audit.reports_url is None:
        return told if audit.volume is not None or is_url(audit) else None
    return f"{audit.reports_url.rstrip('/')}/{key}/report.html"


def _heap_mib(audit: AuditConfig) -> int:
    """Half of the container's memory; the rest is for Python, which reads Kafka, and for what Java takes beside."""
    limit = audit.resources.get("limits", {}).get("memory")
    return max(512, Quantity.of(limit).value // (2 << 20)) if limit is not None else DEFAULT_HEAP_MIB
