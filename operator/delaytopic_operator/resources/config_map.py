"""The ConfigMap with the document that relays are started with; it holds no secret."""

from __future__ import annotations

from delaytopic_api.loading import dump_yaml
from delaytopic_api.relay import RelayConfig
from delaytopic_operator.resources.identity import Document, RelayIdentity, metadata
from delaytopic_operator.resources.pod import CONFIG_KEY


def config_map(identity: RelayIdentity, config: RelayConfig) -> Document:
    """One key, `relay.yaml`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(identity, identity.child),
        "data": {CONFIG_KEY: dump_yaml(config)},
    }
