"""Digests by which is known whether something changed."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from delaytopic_api.documents import GROUP
from delaytopic_api.relay import RelayConfig
from delaytopic_operator.resources.connection_files import SecretFile

CONFIG_HASH: Final = f"{GROUP}/config-hash"
"""On pods: of what a relay reads only when it starts."""
APPLIED_HASH: Final = f"{GROUP}/applied-hash"
"""On every child: of the whole document, so that a field which is wanted no longer counts as a difference, too."""

_LENGTH = 16


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
    return sha256(text.encode()).hexdigest()[:_LENGTH]
