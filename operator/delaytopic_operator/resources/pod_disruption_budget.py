"""The PodDisruptionBudget of relays: nodes are drained one relay at a time."""

from __future__ import annotations

from delaytopic_operator.resources.identity import Document, RelayIdentity, metadata, selector


def pod_disruption_budget(identity: RelayIdentity) -> Document:
    """At most one relay is evicted at a time.

    With a single relay it protects nothing and holds nothing up: no drain of a node ever waits for somebody, unlike
    with `minAvailable: 1`. So there is one for any number of relays, and scaling changes one object only. A relay that
    is not ready, as Kafka is away, does no good by staying, and may always be evicted.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(identity, identity.child),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(identity.key)},
        },
    }
