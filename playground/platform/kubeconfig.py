"""A client of a cluster from its kubeconfig, as kind and others write it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml
from playground.kube.certificates import KeyPair
from playground.kube.kube_client import KubeClient, client_context


class KubeconfigNotUnderstood(Exception):
    """The kubeconfig logs in by something else than a certificate or a token in it."""


def client_of(kubeconfig: Path, directory: Path) -> KubeClient:
    """Connect as the user of the current context; `directory` is for certificates. Raises KubeconfigNotUnderstood."""
    document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = _named(document["clusters"], context["cluster"])["cluster"]
    user = _named(document["users"], context["user"])["user"]
    directory.mkdir(parents=True, exist_ok=True)
    authority = _file(cluster, "certificate-authority", directory)
    certificate, key = (_file(user, name, directory) for name in ("client-certificate", "client-key"))
    token = user.get("token")
    if authority is None or (token is None and (certificate is None or key is None)):
        raise KubeconfigNotUnderstood(
            f"{kubeconfig} has no certificate authority, or neither client certificate nor token"
        )
    pair = KeyPair(certificate, key) if certificate is not None and key is not None else None
    return KubeClient(cluster["server"], client_context(str(authority), pair), token=token, agent="e2e")


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)


def _file(holder: dict[str, Any], name: str, directory: Path) -> Path | None:
    """Return what the kubeconfig holds, or names a file for."""
    if (content := holder.get(f"{name}-data")) is None:
        return Path(holder[name]) if name in holder else None
    path = directory / name
    path.touch(mode=0o600)
    path.write_bytes(base64.b64decode(content))
    return path
