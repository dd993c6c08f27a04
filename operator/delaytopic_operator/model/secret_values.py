"""The contents of Secrets, read by name and key, with an error that names both where something is missing. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from delaytopic_operator.errors import SecretMissing


class SecretValues:
    """The Secrets of one namespace; its text shows none of their values."""

    def __init__(self, namespace: str, secrets: Mapping[str, Mapping[str, Any] | None]) -> None:
        """`secrets` are documents as the API server has them, by name; None for one that is not there."""
        self._namespace = namespace
        self._secrets = secrets

    def text(self, name: str, key: str) -> str:
        """A value as text, without its last line end. Raises `SecretMissing`."""
        where = f"the key {key} of the Secret {self._namespace}/{name}"
        document = self._secrets.get(name)
        if document is None:
            raise SecretMissing(f"the Secret {self._namespace}/{name} does not exist; create it with the key {key}")
        encoded = (document.get("data") or {}).get(key)
        if not encoded:
            held = ", ".join(sorted(document.get("data") or {})) or "nothing"
            raise SecretMissing(f"{where} is missing or empty; the Secret holds: {held}")
        try:
            return base64.b64decode(encoded, validate=True).decode().rstrip("\r\n")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise SecretMissing(f"{where} is not text") from error

    def pem(self, name: str, key: str, kind: str) -> str:
        """A certificate or key in PEM: `kind` is what its first line must name. Raises `SecretMissing`."""
        value = self.text(name, key)
        if "-----BEGIN " not in value or kind not in value:
            raise SecretMissing(f"the key {key} of the Secret {self._namespace}/{name} is no {kind} in PEM")
        return value

    def __repr__(self) -> str:
        """Names only."""
        return f"SecretValues({self._namespace}: {', '.join(sorted(self._secrets))})"
