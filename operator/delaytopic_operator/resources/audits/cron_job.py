"""The objects that audit DelayTopics together, on a schedule: ConfigMaps with their documents, and a CronJob.

One is for all DelayTopics of a DelayClass. DelayTopics with connections of their own are audited together by namespace:
one CronJob for those that reach Kafka in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

from delaytopic_api import resolve
from delaytopic_api.documents import API_VERSION, BackendSettings, DelayClass, DelayTopic, Settings
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import dump_yaml, write_yaml
from delaytopic_api.policy import relay_config
from delaytopic_api.values import BackendType
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
    TABLES_FOLDER,
    audit_container,
    audit_pod,
    class_document,
    common_options,
    is_url,
    ledger_folder,
    ledger_mount,
    publishes_tables,
    topic_document,
    words_of,
)
from delaytopic_operator.resources.connection_files import connection_files, connection_problems
from delaytopic_operator.resources.identity import (
    AUDIT,
    AUDITED_NAMESPACE,
    CLASS,
    INSTANCE_LABEL,
    MANAGER,
    Document,
    audit_name,
    relays_name,
    stamped,
)
from delaytopic_operator.resources.network_policy import audit_network_policy
from delaytopic_operator.resources.pod import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    CONFIG_KEY,
    CONFIG_VOLUME,
    READABLE,
    config_volume,
)

PORT: Final = 8_080
"""The port at which the operator reads verdicts, before the pod ends."""
EXECUTOR_KEY: Final = "executor.yaml"
CLASS_KEY: Final = "class.yaml"
LARGEST_CONFIG_MAP: Final = 48_000
"""Bytes of documents: of larger ones the operator keeps no contents in memory, and would write them again and again."""
LATE_START_SECONDS: Final = 600
LONGEST_RUN_SECONDS: Final = 3_600
RETRIES: Final = 2
KEPT_RUNS: Final = 3


class _Group(NamedTuple):
    """DelayTopics that reach Kafka in one way, at least one."""

    topics: Sequence[DelayTopic]
    settings: Settings
    """The settings of the first; the connection alone is read of them, and that is the same for all."""
    connection: str
    """The mark of the connection among those of a namespace; empty for a class."""


def audit_objects(
    audit: Key, of_class: DelayClass | None, topics: Iterable[DelayTopic], config: OperatorConfig
) -> list[Document]:
    """The documents to apply for the audit of a class, or of a namespace (None), in this order.

    None when the operator is configured without audits, or there are no DelayTopics. `topics` are those that were
    accepted.
    """
    if config.audit.schedule is None:
        return []
    if of_class is not None:
        config = config.model_copy(update={"audit": audit_of_class(config.audit, of_class.spec.audit)})
    groups = _groups(of_class, topics)
    return [stamped(each) for group in groups for each in _Audit(audit, of_class, group, config).documents()]


def schedule_of(audit: Key, of_class: DelayClass | None, config: OperatorConfig) -> str | None:
    """Return the cron line of an audit: the class's or else the operator's; None: there are no audits.

    An `H` in it is replaced, as the minute or the hour, by a number that follows from the name of the class or of the
    namespace. So a hundred audits on `H * * * *` do not begin at once.
    """
    if config.audit.schedule is None:
        return None
    schedule = (of_class.spec.audit.schedule if of_class is not None else None) or config.audit.schedule
    number = int(sha256(str(audit).encode()).hexdigest(), 16)
    fields = schedule.split()
    for place, values in enumerate((60, 24)):
        if place < len(fields):
            fields[place] = re.sub(r"\bH\b", str(number % values), fields[place])
    return " ".join(fields)


def cron_job_of(settings: Settings, config: OperatorConfig) -> str:
    """Return the name of the CronJob that audits a DelayTopic."""
    of_class = settings.class_name
    audit = Key("", of_class) if of_class is not None else Key(settings.namespace, "")
    return audit_name(audit, config.namespace, "" if of_class is not None else _mark(settings))


def _groups(of_class: DelayClass | None, topics: Iterable[DelayTopic]) -> list[_Group]:
    """Divide DelayTopics by how they reach Kafka.

    One that cannot be used, as its class refuses it by now, is left out: with it, the others could not be audited.
    """
    found = dict[str, list[tuple[DelayTopic, Settings]]]()
    for topic in sorted(topics, key=lambda topic: topic.full_name):
        try:
            settings = resolve(topic, of_class)
        except ApiError:
            continue
        if connection_problems(settings):
            continue
        found.setdefault("" if of_class is not None else _mark(settings), []).append((topic, settings))
    return [_Group([topic for topic, _ in each], each[0][1], mark) for mark, each in sorted(found.items())]


def _mark(settings: Settings) -> str:
    assert settings.connection is not None
    return sha256(settings.connection.model_dump_json(by_alias=True).encode()).hexdigest()


class _Audit:
    """The audit of one group: everything is called the same, but for documents, of which there may be several."""

    def __init__(self, audit: Key, of_class: DelayClass | None, group: _Group, config: OperatorConfig) -> None:
        self._key = audit
        self._class = of_class
        self._topics = group.topics
        self._config = config
        self._name = audit_name(audit, config.namespace, group.connection)
        self._selector = {"app.kubernetes.io/name": AUDIT, INSTANCE_LABEL: self._name}
        files = connection_files(group.settings)
        self._kafka_files = files.kafka_files
        backend = BackendSettings(BackendType.KAFKA_BUCKETS, group.settings.backend.id, None)
        self._relay = dump_yaml(relay_config(replace(group.settings, backend=backend), files.kafka))

    @property
    def _audit(self) -> AuditConfig:
        return self._config.audit

    @property
    def _own_account(self) -> str:
        return self._audit.service_account or self._name

    def documents(self) -> list[Document]:
        maps = [*self._documents_maps()]
        sources = [{"configMap": {"name": name}} for name, _ in maps]
        folder = {"name": "audit", "projected": {"defaultMode": READABLE, "sources": sources}}
        pod = self._pod([config_volume(CONFIG_VOLUME, self._name), folder])
        objects = [self._config_map(name, data) for name, data in [(self._name, self._settings(pod)), *maps]]
        if self._audit.service_account is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}
            objects.insert(0, {**account, "metadata": self._metadata(self._name)})
        if self._config.network_policy == "Create":
            ports = (DRIVER_PORT, BLOCK_MANAGER_PORT) if has_executors(self._audit) else ()
            own = self._metadata(self._name)
            objects.append(audit_network_policy(own, self._selector, PORT, ports, self._config))
        return [*objects, self._cron_job(pod)]

    def _documents_maps(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield ConfigMaps by name: a key for each document, as many in one as there is room for."""
        number, size, data = 0, 0, dict[str, str]()
        if self._class is not None:
            data[CLASS_KEY] = write_yaml([class_document(self._class)])
        for topic in self._topics:
            text = write_yaml([topic_document(topic, self._class)])
            key = f"{relays_name(Key(topic.metadata.namespace, topic.metadata.name))}.yaml"
            if data and size + len(text.encode()) > LARGEST_CONFIG_MAP:
                yield f"{self._name}-{number}", data
                number, size, data = number + 1, 0, {}
            data[key] = text
            size += len(key) + len(text.encode())
        yield f"{self._name}-{number}", data

    def _settings(self, pod: Document) -> dict[str, str]:
        """Return what the pod is told: how to reach Kafka, and the template of executor pods, if it has any."""
        if not has_executors(self._audit):
            return {CONFIG_KEY: self._relay}
        executor = executor_pod(self._pod_labels(), self._own_account, pod, self._audit, LONGEST_RUN_SECONDS)
        return {CONFIG_KEY: self._relay, EXECUTOR_KEY: write_yaml([executor])}

    def _config_map(self, name: str, data: Mapping[str, str]) -> Document:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata(name), "data": data}

    def _metadata(self, name: str) -> Document:
        """Return the metadata of an object. Kubernetes removes it with the class; without one, the operator does, as
        DelayTopics wait for it when they go.
        """
        labels = self._pod_labels()
        if self._class is None:
            namespace = self._key.namespace
            annotations = {AUDITED_NAMESPACE: namespace}
            return {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        of_class = self._class.metadata
        owner = {"apiVersion": API_VERSION, "kind": "DelayClass", "name": of_class.name, "uid": of_class.uid}
        return {
            "name": name,
            "namespace": self._class.spec.relay_namespace or self._config.namespace,
            "labels": labels,
            "annotations": {CLASS: of_class.name},
            "ownerReferences": [{**owner, "controller": True}],
        }

    def _pod_labels(self) -> dict[str, str]:
        return {
            **self._selector,
            "app.kubernetes.io/managed-by": MANAGER,
            "app.kubernetes.io/component": AUDIT.removeprefix("delaytopic-"),
        }

    def _cron_job(self, pod: Document) -> Document:
        """Runs `delaytopic audit run` in such pods.

        A missed objective is a result, with exit code 0; only a run without any verdict fails, and is tried again.
        """
        metadata = self._metadata(self._name)
        of_pod = {"labels": metadata["labels"], "annotations": metadata["annotations"]}
        return {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": metadata,
            "spec": {
                "schedule": schedule_of(self._key, self._class, self._config),
                "timeZone": "Etc/UTC",
                "concurrencyPolicy": "Forbid",
                "startingDeadlineSeconds": LATE_START_SECONDS,
                "successfulJobsHistoryLimit": KEPT_RUNS,
                "failedJobsHistoryLimit": KEPT_RUNS,
                "jobTemplate": {
                    "metadata": of_pod,
                    "spec": {
                        "activeDeadlineSeconds": LONGEST_RUN_SECONDS,
                        "backoffLimit": RETRIES,
                        # A ledger takes one run at a time.
                        "podReplacementPolicy": "Failed",
                        "template": {"metadata": of_pod, "spec": pod},
                    },
                },
            },
        }

    def _pod(self, folders: Sequence[Document]) -> Document:
        drives = has_executors(self._audit)
        account = (self._audit.driver_account if drives else None) or self._own_account
        spec = audit_pod(self._config, account, self._container(), self._kafka_files, folders)
        return {**spec, "automountServiceAccountToken": drives, "restartPolicy": "Never"}

    def _container(self) -> Document:
        audit = self._audit
        mounts = [ledger_mount(path) for path in self._places()] if audit.volume is not None else []
        container = {
            **audit_container(self._config, self._arguments(), self._kafka_files, mounts),
            "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
        if has_executors(audit):
            container["env"] = [*container["env"], *driver_variables()]
            ports: list[dict[str, Any]] = [{"containerPort": port} for port in (DRIVER_PORT, BLOCK_MANAGER_PORT)]
            container["ports"] = [*container["ports"], *ports]
        return container

    def _places(self) -> list[str]:
        """Return what the audit sees of a volume that all audits share: no audit can change what others found.

        The reports of a namespace are in a folder of their own.
        """
        reports = f"{REPORTS_FOLDER}/{self._key.namespace}".rstrip("/")
        tables = [f"{TABLES_FOLDER}/{self._own_folder}"] if publishes_tables(self._audit) else []
        ledger = [] if is_url(self._audit) else [f"{ledger_folder(self._audit)}/{self._own_folder}"]
        return [reports, *tables, *ledger]

    @property
    def _own_folder(self) -> str:
        """The ledger's place among those of others; DelayTopics of a namespace share one, however they reach Kafka."""
        return f"namespaces/{self._key.namespace}" if self._key.namespace else f"classes/{self._key.name}"

    def _arguments(self) -> list[str]:
        audit = self._audit
        options = {
            "--file": DOCUMENTS_FOLDER,
            "--relay-config": CONFIG_FILE,
            **common_options(audit, master_of(audit), self._ledger()),
            "--serve": f"0.0.0.0:{PORT}",
        }
        if publishes_tables(audit):
            options |= {"--tables": self._tables()}
        if has_executors(audit):
            options |= {
                "--executor-pod": f"{CONFIG_FOLDER}/{EXECUTOR_KEY}",
                "--min-executors": str(audit.executors.min),
                "--max-executors": str(audit.executors.max),
            }
        return words_of(options, audit)

    def _ledger(self) -> str:
        if is_url(self._audit):
            return f"{(self._audit.ledger or '').rstrip('/')}/{self._own_folder}"
        return self._in_volume(ledger_folder(self._audit))

    def _tables(self) -> str:
        if self._audit.volume is not None:
            return self._in_volume(TABLES_FOLDER)
        return f"{(self._audit.ledger or '').rstrip('/')}/{TABLES_FOLDER}/{self._own_folder}"

    def _in_volume(self, folder: str) -> str:
        # Executors mount the volume, too: as a URL it says so.
        scheme = "file://" if has_executors(self._audit) else ""
        return f"{scheme}{LEDGER_FOLDER}/{folder}/{self._own_folder}"
