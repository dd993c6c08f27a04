"""The objects that audit all DelayTopics of a DelayClass together: their documents, and a Deployment of one pod.

One Spark goes on and audits them, again and again; the operator asks it for verdicts over HTTP. DelayTopics come and go
in the ConfigMaps, which it reads anew for each round, and no pod starts for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from delaytopic_api import resolve
from delaytopic_api.documents import API_VERSION, BackendSettings, DelayClass, DelayTopic
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import dump_yaml, write_yaml
from delaytopic_api.policy import relay_config
from delaytopic_api.values import AuditMode, BackendType
from delaytopic_operator.config import AuditConfig, OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.audits.executors import audit_of_class, master_of
from delaytopic_operator.resources.audits.pod import (
    CLASSES_FOLDER,
    DOCUMENTS_FOLDER,
    LEDGER_FOLDER,
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
    CLASS,
    CONFIG_HASH,
    MANAGER,
    TEMPLATE_HASH,
    Document,
    class_audit_name,
    owning_replica_set,
    relays_name,
    stamped,
)
from delaytopic_operator.resources.network_policy import class_audit_network_policy
from delaytopic_operator.resources.pod import CONFIG_FILE, CONFIG_KEY, READABLE, config_volume

PORT: Final = 8_080
LARGEST_CONFIG_MAP: Final = 48_000
"""Bytes of documents: of larger ones the operator keeps no contents in memory, and would write them again and again."""
CLASS_KEY: Final = "class.yaml"


def class_audit_objects(
    of_class: DelayClass, topics: Iterable[DelayTopic], secrets_version: str, config: OperatorConfig
) -> list[Document]:
    """The documents to apply, in this order; none for a class that asks for no such audit or has no DelayTopics.

    `topics` are those that were accepted; `secrets_version` is of the class's Secrets. Raises `Refused` where the
    connection of the class cannot be used.
    """
    if of_class.spec.audit.every is None or config.audit.schedule is None:
        return []
    accepted = [topic for topic in sorted(topics, key=lambda topic: topic.full_name) if _fits(topic, of_class)]
    if not accepted:
        return []
    audit = audit_of_class(config.audit, of_class.spec.audit).model_copy(update={"mode": AuditMode.JOB})
    return _ClassAudit(of_class, accepted, secrets_version, config.model_copy(update={"audit": audit})).documents()


def is_class_audit(pod: Mapping[str, Any], class_name: str, operator_namespace: str) -> bool:
    """Tell whether a ReplicaSet of the class's Deployment made the pod, as far as the pod says: see `is_relay`."""
    template = (pod["metadata"].get("labels") or {}).get(TEMPLATE_HASH)
    name = class_audit_name(class_name, operator_namespace)
    return template is not None and owning_replica_set(pod) == f"{name}-{template}"


def _fits(topic: DelayTopic, of_class: DelayClass) -> bool:
    """Tell whether the class still allows it: by one that it refuses, the audit could not read the others."""
    try:
        resolve(topic, of_class)
    except ApiError:
        return False
    return True


class _ClassAudit:
    """The audit of these DelayTopics, at least one."""

    def __init__(
        self, of_class: DelayClass, topics: Sequence[DelayTopic], secrets_version: str, config: OperatorConfig
    ) -> None:
        self._class = of_class
        self._topics = topics
        self._config = config
        self._name = class_audit_name(of_class.metadata.name, config.namespace)
        self._labels = {"app.kubernetes.io/name": AUDIT, "app.kubernetes.io/instance": self._name}
        settings = resolve(topics[0], of_class)
        files = connection_files(settings)
        self._kafka_files = files.kafka_files
        # The connection alone is read of it, and that is the same for all of the class.
        backend = BackendSettings(BackendType.KAFKA_BUCKETS, settings.backend.id, None)
        self._relay = dump_yaml(relay_config(replace(settings, backend=backend), files.kafka))
        self._version = sha256(f"{files.kafka.to_document()} {secrets_version}".encode()).hexdigest()[:16]

    @property
    def _audit(self) -> AuditConfig:
        return self._config.audit

    def documents(self) -> list[Document]:
        maps = [*self._documents_maps()]
        folder = {
            "projected": {"defaultMode": READABLE, "sources": [{"configMap": {"name": name}} for name, _ in maps]}
        }
        objects = [self._config_map(name, data) for name, data in [(self._name, {CONFIG_KEY: self._relay}), *maps]]
        if self._audit.service_account is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}
            objects.insert(0, {**account, "metadata": self._metadata(self._name)})
        if self._config.network_policy == "Create":
            own = self._metadata(self._name)
            objects.append(class_audit_network_policy(own, self._labels, PORT, self._config))
        objects.append(self._deployment({"name": "audit", **folder}))
        return [stamped(each) for each in objects]

    def _documents_maps(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield ConfigMaps by name: a key for each document, as many in one as there is room for."""
        number, size, data = 0, 0, {CLASS_KEY: write_yaml([class_document(self._class)])}
        for topic in self._topics:
            text = write_yaml([topic_document(topic, self._class)])
            key = f"{relays_name(Key(topic.metadata.namespace, topic.metadata.name))}.yaml"
            if data and size + len(text.encode()) > LARGEST_CONFIG_MAP:
                yield f"{self._name}-{number}", data
                number, size, data = number + 1, 0, {}
            data[key] = text
            size += len(key) + len(text.encode())
        yield f"{self._name}-{number}", data

    def _config_map(self, name: str, data: dict[str, str]) -> Document:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata(name), "data": data}

    def _metadata(self, name: str) -> Document:
        """Return the metadata of an object: Kubernetes removes it with the class."""
        of_class = self._class.metadata
        owner = {"apiVersion": API_VERSION, "kind": "DelayClass", "name": of_class.name, "uid": of_class.uid}
        return {
            "name": name,
            "namespace": self._class.spec.relay_namespace or self._config.namespace,
            "labels": self._object_labels(),
            "annotations": {CLASS: of_class.name},
            "ownerReferences": [{**owner, "controller": True}],
        }

    def _object_labels(self) -> dict[str, str]:
        return {
            **self._labels,
            "app.kubernetes.io/managed-by": MANAGER,
            "app.kubernetes.io/component": AUDIT.removeprefix("delaytopic-"),
        }

    def _deployment(self, documents: Document) -> Document:
        annotations = {CLASS: self._class.metadata.name, CONFIG_HASH: self._version}
        container = self._container(self._kafka_files)
        account = self._audit.service_account or self._name
        folders = [config_volume("config", self._name), documents]
        pod = audit_pod(self._config, account, container, self._kafka_files, folders)
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self._metadata(self._name),
            "spec": {
                "replicas": 1,
                # A ledger takes one run at a time: of two, one would do its work in vain.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": self._labels},
                "template": {"metadata": {"labels": self._object_labels(), "annotations": annotations}, "spec": pod},
            },
        }

    def _container(self, files: Iterable[SecretFile]) -> Document:
        audit = self._audit
        mounts = [ledger_mount("")] if audit.volume is not None else []
        return {
            **audit_container(self._config, self._arguments(), files, mounts),
            "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
            "livenessProbe": {
                "httpGet": {"path": "/livez", "port": "http"},
                "initialDelaySeconds": 60,
                "periodSeconds": 60,
                "timeoutSeconds": 10,
                "failureThreshold": 3,
            },
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }

    def _arguments(self) -> list[str]:
        audit = self._audit
        home = (audit.ledger or "").rstrip("/") if is_url(audit) else f"{LEDGER_FOLDER}/{ledger_folder(audit)}"
        options = {
            "--file": DOCUMENTS_FOLDER,
            "--relay-config": CONFIG_FILE,
            **common_options(audit, master_of(audit), f"{home}/{CLASSES_FOLDER}/{self._class.metadata.name}"),
            "--every": str(self._class.spec.audit.every),
            "--serve": f"0.0.0.0:{PORT}",
        }
        return words_of(options, audit)
