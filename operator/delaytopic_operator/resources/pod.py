"""The common parts of the pods of relays and audits: the strictest of Kubernetes' Pod Security Standards, and files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby
from typing import Final

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.resources.connection_files import SECRETS_FOLDER, SecretFile
from delaytopic_operator.resources.identity import Document

CONFIG_FOLDER: Final = "/etc/delaytopic/config"
CONFIG_VOLUME: Final = "config"
CONFIG_KEY: Final = "relay.yaml"
CONFIG_FILE: Final = f"{CONFIG_FOLDER}/{CONFIG_KEY}"
TEMPORARY_FOLDER: Final = "/tmp"
READABLE: Final = 0o444
"""Files belong to root and the process does not: others have to be able to read them. Nothing else is in the pod."""


def pod_spec(config: OperatorConfig, account: str, container: Document, volumes: list[Document]) -> Document:
    """A pod that passes `restricted`, without a token for the API server.

    No user id is set: the image has one that is not root, and OpenShift may give each namespace its own (the audit
    wants one that has a name).
    """
    spec: Document = {
        "serviceAccountName": account,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": volumes,
    }
    if config.images.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in config.images.pull_secrets]
    return spec


def container_security() -> Document:
    """Return the rights of a container: nothing that a process without privileges has no need of."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def temporary_volume(size: str) -> Document:
    """The only place that a process can write to."""
    return {"name": "tmp", "emptyDir": {"sizeLimit": size}}


def config_volume(name: str, config_map: str) -> Document:
    """All keys of a ConfigMap."""
    return {"name": name, "configMap": {"name": config_map, "defaultMode": READABLE}}


def secret_volumes(files: Iterable[SecretFile]) -> list[Document]:
    """One volume for each Secret, with no other keys than those that are read."""
    return [
        {
            "name": _volume_name(secret),
            "secret": {
                "secretName": secret,
                "defaultMode": READABLE,
                "items": [{"key": key, "path": key} for key in keys],
            },
        }
        for secret, keys in _by_secret(files)
    ]


def secret_mounts(files: Iterable[SecretFile]) -> list[Document]:
    """Return where the volumes of `secret_volumes` are."""
    return [mount(_volume_name(secret), f"{SECRETS_FOLDER}/{secret}") for secret, _ in _by_secret(files)]


def mount(volume: str, path: str, *, writable: bool = False) -> Document:
    """A volume at a path."""
    return {"name": volume, "mountPath": path} | ({} if writable else {"readOnly": True})


def _by_secret(files: Iterable[SecretFile]) -> Iterator[tuple[str, list[str]]]:
    for secret, group in groupby(sorted(set(files)), key=lambda file: file.secret):
        yield secret, [file.key for file in group]


def _volume_name(secret: str) -> str:
    """A volume's name is shorter than a Secret's may be, and has no dots."""
    return f"secret-{sha256(secret.encode()).hexdigest()[:8]}"
