"""The sample team of `make up`: a namespace, a DelayTopic of three lines, and a pod that sends. Pure."""

from __future__ import annotations

from typing import Any, Final

from playground.platform.installation import BOOTSTRAP_SERVERS, ENABLED, Images, namespace
from playground.platform.pod_runs import restricted_pod
from playground.traffic.plan import Plan

TEAM: Final = "shop"
NAME: Final = "order-reminders"
SENDER: Final = "sender"
PER_SECOND: Final = 10
DAY_SECONDS: Final = 86_400
TRAFFIC: Final = Plan("sample", DAY_SECONDS * PER_SECOND, PER_SECOND, delays_ms=(5_000, 120_000))
"""The traffic of a day; then Kubernetes starts the sender again."""


def sample_team() -> list[dict[str, Any]]:
    """Its namespace, let in by the class, and its DelayTopic."""
    spec = {"source": {"topic": f"{TEAM}.{NAME}.delayed"}, "target": {"topic": f"{TEAM}.{NAME}"}}
    topic = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": NAME, "namespace": TEAM},
        "spec": spec,
    }
    return [namespace(TEAM, **{ENABLED: "true"}), topic]


def sender(images: Images) -> dict[str, Any]:
    """The Deployment that keeps sending; it needs the source topic."""
    labels = {"app": SENDER}
    program = [
        "python",
        "-m",
        "playground.traffic.sender",
        BOOTSTRAP_SERVERS,
        f"{TEAM}.{NAME}.delayed",
        TRAFFIC.encode(),
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": SENDER, "namespace": TEAM},
        "spec": {
            "selector": {"matchLabels": labels},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": labels}, "spec": restricted_pod(images["traffic"], program)},
        },
    }
