"""Names, labels, owners and digests of everything that is made for a DelayTopic. Pure."""

from __future__ import annotations

import hmac
import json
from base64 import b32encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Final

from delaytopic_api.documents import API_VERSION, GROUP
from delaytopic_api.relay import RelayConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.connection_files import SecretFile

Document = dict[str, Any]

MANAGER: Final = "delaytopic-operator"
RELAY: Final = "delaytopic-relay"
AUDIT: Final = "delaytopic-audit"
NAMESPACE_LABEL: Final = f"{GROUP}/namespace"
NAME_LABEL: Final = f"{GROUP}/name"
OWNER_LABEL: Final = f"{GROUP}/owner-uid"
CLASS: Final = f"{GROUP}/delay-class"
"""The annotation of what audits all DelayTopics of a DelayClass: the name of the class."""
AUDITED_NAMESPACE: Final = f"{GROUP}/audited-namespace"
"""The annotation of what audits the DelayTopics of a namespace that have no class: the namespace."""
CONFIG_HASH: Final = f"{GROUP}/config-hash"
"""The annotation of pods with the hash of what a relay reads only when it starts."""
APPLIED_HASH: Final = f"{GROUP}/applied-hash"
"""The annotation of everything that is made, with the hash of the whole document: a field which is wanted no longer
counts as a difference, too."""
IN_TURN: Final = f"{GROUP}/in-turn"
"""The annotation of Deployments whose relays were started anew last for no change of their DelayTopic's own."""
TEMPLATE_HASH: Final = "pod-template-hash"
"""The label by which Kubernetes says which ReplicaSet of a Deployment made a pod."""
LONGEST_RELAYS_NAME: Final = 55
"""Kubernetes cuts the names of pods, which begin with it."""
LONGEST_CRON_JOB: Final = 52
"""Kubernetes adds eleven characters to the name of each Job that a CronJob makes."""
CONNECTION_MARK: Final = 8
"""The length of the mark by which audits of a namespace that reach Kafka in different ways are told from each other."""
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"

_HASH_LENGTH = 16
_RESERVED_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/managed-by", "app.kubernetes.io/component")


@dataclass(frozen=True, slots=True)
class RelayIdentity:
    """The owner of some relays, and the place where they run."""

    key: Key
    """The DelayTopic."""
    uid: str
    """Its uid."""
    namespace: str
    """The namespace where the relays run."""
    owned: bool
    """True if Kubernetes removes what is made with the DelayTopic; not possible across namespaces."""
    kube_cluster: str | None = None
    """The mark of the Kubernetes cluster, with which relays' names in their group end; None: without one."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Inherited from the DelayTopic by all that is made; `relay_objects` sets it from the allow list."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Inherited from the DelayTopic by all that is made; `relay_objects` sets it from the allow list."""

    @property
    def relays_name(self) -> str:
        """The name of what relays consist of."""
        return relays_name(self.key)


def relays_name(key: Key) -> str:
    """Return the name of the relays' objects.

    It is different for different DelayTopics, also where somebody seeks names that are not.
    """
    return _named(key, "relay", LONGEST_RELAYS_NAME)


def audit_name(audit: Key, operator_namespace: str, connection: str = "") -> str:
    """Return what everything is called that audits the DelayTopics of a class, or of a namespace: up to 52 characters.

    Each operator has its own. Those of a namespace end with the mark of a `connection`, and begin alike.
    """
    if not audit.namespace:
        return _named(Key(operator_namespace, audit.name), "audits", LONGEST_CRON_JOB)
    owner = Key(f"{operator_namespace}/namespaces", audit.namespace)
    begin = _named(owner, "audits", LONGEST_CRON_JOB - CONNECTION_MARK - 1)
    return f"{begin}-{connection[:CONNECTION_MARK]}"


def is_of_audit(document: Mapping[str, Any], audit: Key, operator_namespace: str) -> bool:
    """Tell whether an object or a pod is of this operator's audit, and not of another operator's of the same class."""
    instance = (document["metadata"].get("labels") or {}).get(INSTANCE_LABEL, "")
    name = audit_name(audit, operator_namespace)
    return bool(instance.startswith(name) if audit.namespace else instance == name)


def selector(key: Key) -> dict[str, str]:
    """The labels by which the pods of a DelayTopic are found; they never change."""
    return {"app.kubernetes.io/name": RELAY, NAMESPACE_LABEL: key.namespace, NAME_LABEL: key.name}


def labels(identity: RelayIdentity) -> dict[str, str]:
    """The labels of everything that is made."""
    return {
        **identity.labels,
        **selector(identity.key),
        "app.kubernetes.io/managed-by": MANAGER,
        "app.kubernetes.io/component": RELAY.removeprefix("delaytopic-"),
        OWNER_LABEL: identity.uid,
    }


def pod_labels(identity: RelayIdentity) -> dict[str, str]:
    """The labels of pods: without the owner's uid, so that applying a deleted DelayTopic again starts no pod anew."""
    return {name: value for name, value in labels(identity).items() if name != OWNER_LABEL}


def is_reserved(name: str) -> bool:
    """Return whether a label or an annotation is the operator's own."""
    return name in _RESERVED_LABELS or name.partition("/")[0] == GROUP


def inherited(values: Mapping[str, str], allowed: Iterable[str]) -> dict[str, str]:
    """Return the labels or annotations of a DelayTopic that its objects get: those on the list, which may hold
    globs.
    """
    globs = tuple(allowed)
    return {
        name: value
        for name, value in sorted(values.items())
        if not is_reserved(name) and any(fnmatchcase(name, glob) for glob in globs)
    }


def metadata(identity: RelayIdentity, name: str) -> Document:
    """The metadata of an object; the owner's deletion is not held up by it (`blockOwnerDeletion` needs a right)."""
    document: Document = {"name": name, "namespace": identity.namespace, "labels": labels(identity)}
    if identity.annotations:
        document["annotations"] = dict(identity.annotations)
    if identity.owned:
        owner = {"apiVersion": API_VERSION, "kind": "DelayTopic", "name": identity.key.name, "uid": identity.uid}
        document["ownerReferences"] = [{**owner, "controller": True}]
    return document


def is_own(document: Mapping[str, Any], key: Key) -> bool:
    """Tell whether an object is this DelayTopic's by its labels, or by none: labels that were lost are restored."""
    labels = document["metadata"].get("labels") or {}
    return (labels.get(NAMESPACE_LABEL, key.namespace), labels.get(NAME_LABEL, key.name)) == key


def _named(key: Key, program: str, longest: int) -> str:
    """Join as much of the name as there is room for and 128 bits of the digest of the whole key."""
    digest = b32encode(sha256(str(key).encode()).digest()[:16]).decode().rstrip("=").lower()
    ending = f"-{program}-{digest}"
    return key.name[: longest - len(ending)].rstrip("-") + ending


def config_name(identity: RelayIdentity, config: RelayConfig) -> str:
    """Return the name of the ConfigMap that holds this configuration, and never another one."""
    return f"{identity.relays_name}-{_digest(config.to_document())}"


def config_hash(config: RelayConfig, secrets_version: str) -> str:
    """Another one means that relays have to start anew: they read all of their configuration once."""
    return _digest([config.to_document(), secrets_version])


def secrets_version(files: Iterable[SecretFile], secrets: Mapping[str, Mapping[str, Any] | None]) -> str:
    """Another one means that the content of one of the files changed; `secrets` are the Secret documents by name.

    Give it `ConnectionFiles.read_once`. It ends up on pods, which more people may read than Secrets: the Secret's uid
    is the key of the digest, so that a short password cannot be found by trying.
    """
    return _digest([[*file, _content_digest(secrets.get(file.secret), file.key)] for file in sorted(files)])


def stamped(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its own digest among its annotations."""
    metadata = document["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED_HASH: _digest(document)}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def _content_digest(secret: Mapping[str, Any] | None, key: str) -> str | None:
    content = (secret.get("data") or {}).get(key) if secret is not None else None
    if secret is None or content is None:
        return None
    return hmac.new(str(secret["metadata"]["uid"]).encode(), str(content).encode(), sha256).hexdigest()


def _digest(content: object) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def is_relay(pod: Mapping[str, Any], key: Key) -> bool:
    """Tell whether a ReplicaSet of the relays' Deployment made the pod, as far as the pod says: anybody writes labels.

    ReplicaSets and Jobs are not watched. An owner that is not there does not help a forger for long: Kubernetes'
    garbage collector removes such pods.
    """
    template = (pod["metadata"].get("labels") or {}).get(TEMPLATE_HASH)
    return template is not None and _maker(pod, "apps/v1", "ReplicaSet") == f"{relays_name(key)}-{template}"


def is_run_by_job(pod: Mapping[str, Any]) -> bool:
    """Tell whether a Job made the pod; those that a person starts from the CronJob have names of any kind."""
    return _maker(pod, "batch/v1", "Job") is not None


def _maker(pod: Mapping[str, Any], api_version: str, kind: str) -> str | None:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == (api_version, kind):
            return str(owner.get("name"))
    return None
