"""The ServiceAccount of relays and audits: a name without any right, and without a token."""

from __future__ import annotations

from delaytopic_operator.resources.identity import Document, RelayIdentity, metadata


def service_account(identity: RelayIdentity) -> Document:
    """Neither relays nor audits speak to the API server."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(identity, identity.child),
        "automountServiceAccountToken": False,
    }
