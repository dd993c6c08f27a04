"""The file that kubectl, helm and the Python client connect by."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from playground.kube.certificates import KeyPair


def certificate_user(pair: KeyPair) -> dict[str, str]:
    """A user who shows a certificate."""
    return {"client-certificate-data": _encoded(pair.certificate), "client-key-data": _encoded(pair.key)}


def write_kubeconfig(
    path: Path, server: str, authority: Path, user: dict[str, str], namespace: str = "default"
) -> Path:
    """Write it, readable by its owner only: `user` holds a certificate or a token."""
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tests", "cluster": cluster}],
        "users": [{"name": "tests", "user": user}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": namespace}}],
        "current-context": "tests",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
