"""Small objects for tests of the operator's shell."""

from __future__ import annotations

from delaytopic_operator.kube.transport import Document
from delaytopic_operator.model import kinds


def config_map(namespace: str, name: str = "one", **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data}


def delay_topic(namespace: str, name: str = "reminders", **annotations: str) -> Document:
    """Make one of a class that nobody makes: others are looked at whenever another test makes or deletes a class."""
    return {
        "apiVersion": kinds.DELAY_TOPIC.api_version,
        "kind": "DelayTopic",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
        "spec": {
            "delayClassName": namespace,
            "source": {"topic": f"{name}.delayed"},
            "target": {"topic": name},
        },
    }
