"""The objects that audit one DelayTopic on a schedule: a ConfigMap with its documents, and a CronJob."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

from delaytopic_api.documents import DelayClass, DelayTopic, Settings
from delaytopic_api.errors import Refused
from delaytopic_api.loading import write_yaml
from delaytopic_operator.config import AuditConfig, OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.audits.executors import (
    BLOCK_MANAGER_PORT,
    DRIVER_PORT,
    audit_of_class,
    driver_variables,
    executor_pod,
    has_executors,
    master_of,
)
from delaytopic_operator.resources.audits.pod import (
    DOCUMENTS_FOLDER,
    LEDGER_FOLDER,
    REPORTS_FOLDER,
    audit_container,
    audit_pod,
    class_document,
    common_options,
    is_url,
    ledger_folder,
    ledger_mount,
    topic_document,
    words_of,
)
from delaytopic_operator.resources.connection_files import SecretFile, connection_files
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
from delaytopic_operator.resources.pod import CONFIG_FILE, CONFIG_KEY, CONFIG_VOLUME, config_volume
from delaytopic_operator.resources.relay_objects import relay_problems, with_inherited

DOCUMENTS_KEY: Final = "documents.yaml"
EXECUTOR_KEY: Final = "executor.yaml"
STATUS_FILE: Final = "/dev/termination-log"
"""The kubelet puts its content, up to 4096 bytes, into the status of the pod: the verdict reaches the operator although
the audit has no right to speak to the API server."""
LATE_START_SECONDS: Final = 600
LONGEST_RUN_SECONDS: Final = 3_600
RETRIES: Final = 2
KEPT_RUNS: Final = 3


def audit_documents_name(identity: RelayIdentity) -> str:
    """Return what the ConfigMap is called."""
    return f"{identity.relays_name}-audit"


def audit_config_map(
    identity: RelayIdentity,
    topic: DelayTopic,
    delay_class: DelayClass | None,
    relay: str,
    executor: Document | None = None,
) -> Document:
    """In `documents.yaml` the DelayTopic, and the DelayClass if it has one; in `relay.yaml` what its relays are told;
    in `executor.yaml` the template of executor pods, if there are to be any.
    """
    documents = [
        topic_document(topic, delay_class),
        *([class_document(delay_class)] if delay_class is not None else []),
    ]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(identity, audit_documents_name(identity), AUDIT),
        "data": {
            DOCUMENTS_KEY: write_yaml(documents),
            CONFIG_KEY: relay,
            **({EXECUTOR_KEY: write_yaml([executor])} if executor else {}),
        },
    }


def audit_cron_job(identity: RelayIdentity, pod: Document, config: OperatorConfig) -> Document:
    """Runs `delaytopic audit run` in such pods on `audit.schedule`, which must be set.

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


def _pod(identity: RelayIdentity, kafka_files: tuple[SecretFile, ...], config: OperatorConfig) -> Document:
    audit = config.audit
    account = (audit.driver_account if has_executors(audit) else audit.service_account) or identity.relays_name
    name = audit_documents_name(identity)
    # Relays start from other ConfigMaps, which come and go with them.
    folders = [config_volume(CONFIG_VOLUME, name), config_volume("audit", name)]
    spec = audit_pod(config, account, _container(identity, kafka_files, config), kafka_files, folders)
    return {**spec, "automountServiceAccountToken": has_executors(audit), "restartPolicy": "Never"}


def _container(identity: RelayIdentity, kafka_files: tuple[SecretFile, ...], config: OperatorConfig) -> Document:
    audit = config.audit
    mounts = _ledger_mounts(identity.key, audit) if audit.volume is not None else []
    container = {
        **audit_container(config, _arguments(identity.key, audit), kafka_files, mounts),
        "terminationMessagePath": STATUS_FILE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if has_executors(audit):
        container["env"] = [*container["env"], *driver_variables()]
        container["ports"] = [{"containerPort": port} for port in (DRIVER_PORT, BLOCK_MANAGER_PORT)]
    return container


def _ledger_mounts(key: Key, audit: AuditConfig) -> list[Document]:
    """Of the volume that all audits share, only what is this DelayTopic's: no audit can change what others found."""
    folders = [REPORTS_FOLDER] if is_url(audit) else [REPORTS_FOLDER, ledger_folder(audit)]
    return [ledger_mount(f"{folder}/{key.namespace}.{key.name}") for folder in folders]


def _arguments(key: Key, audit: AuditConfig) -> list[str]:
    options = {
        "--file": f"{DOCUMENTS_FOLDER}/{DOCUMENTS_KEY}",
        "--name": str(key),
        "--relay-config": CONFIG_FILE,
        **common_options(audit, master_of(audit), _ledger(key, audit)),
        "--status-file": STATUS_FILE,
    }
    if has_executors(audit):
        options |= {
            "--executor-pod": f"{DOCUMENTS_FOLDER}/{EXECUTOR_KEY}",
            "--min-executors": str(audit.executors.min),
            "--max-executors": str(audit.executors.max),
        }
    return words_of(options, audit)


def _ledger(key: Key, audit: AuditConfig) -> str:
    """Return the place of this DelayTopic's ledger, beside those of others."""
    name = f"{key.namespace}.{key.name}"
    if is_url(audit):
        return f"{(audit.ledger or '').rstrip('/')}/{name}"
    # Executors mount the volume, too: as a URL it says so.
    return f"{'file://' if has_executors(audit) else ''}{LEDGER_FOLDER}/{ledger_folder(audit)}/{name}"


def audit_objects(
    topic: DelayTopic,
    delay_class: DelayClass | None,
    settings: Settings,
    identity: RelayIdentity,
    config: OperatorConfig,
    relay: str,
) -> list[Document]:
    """The documents to apply beside those of `relay_objects`, whose ServiceAccount they use, in this order.

    `relay` is the text of the relays' configuration.

    None when the operator is configured without audits, or the class has all its DelayTopics audited together. Raises
    `Refused` where `relay_objects` does.
    """
    if config.audit.schedule is None or (delay_class is not None and delay_class.spec.audit.every is not None):
        return []
    if problems := relay_problems(settings, topic.spec.relay, delay_class.spec.relay if delay_class else None):
        raise Refused(problems)
    identity = with_inherited(identity, topic.metadata, config)
    audit = audit_of_class(config.audit, delay_class.spec.audit) if delay_class is not None else config.audit
    config = config.model_copy(update={"audit": audit})
    pod = _pod(identity, tuple(connection_files(settings).kafka_files), config)
    executor = executor_pod(identity, pod, audit, LONGEST_RUN_SECONDS) if has_executors(audit) else None
    documents = [audit_config_map(identity, topic, delay_class, relay, executor)]
    if config.network_policy == "Create":
        ports = (DRIVER_PORT, BLOCK_MANAGER_PORT) if has_executors(audit) else ()
        documents.append(audit_network_policy(identity, ports))
    documents.append(audit_cron_job(identity, pod, config))
    return [stamped(each) for each in documents]
