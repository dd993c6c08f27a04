"""An operator whose passes only say what they see; what is around them is the real one."""

from __future__ import annotations

import time
from collections.abc import Iterable

import structlog

from delaytopic_operator.command_line import operator_command
from delaytopic_operator.model import kinds
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.runtime.manager import Reconcilers, Shell

log = structlog.get_logger()


class RecordingReconciler:
    """Logs each pass. With the annotation `test/write`, writes a ConfigMap named as the DelayTopic; with
    `test/seconds`, a pass takes so long."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        seen = self._shell.store.get(kinds.DELAY_TOPIC, key.namespace, key.name)
        annotations = ((seen or {}).get("metadata", {})).get("annotations") or {}
        time.sleep(float(annotations.get("test/seconds", 0)))
        if "test/write" in annotations:
            metadata = {"namespace": key.namespace, "name": key.name, "labels": labels_of(key)}
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            self._shell.kube.apply(document | {"data": {"write": annotations["test/write"]}}, "test")
        log.info("pass", delaytopic=str(key), seen=seen is not None, annotations=annotations)
        return Result()

    def keys(self) -> Iterable[Key]:
        return self._shell.store.keys()


class Idle:
    """Does nothing: what is recorded is about DelayTopics."""

    def reconcile(self, key: Key, now_ms: int, asked_for_ms: int) -> Result:
        return Result()

    def keys(self) -> Iterable[Key]:
        return ()


def labels_of(key: Key) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "delaytopic-operator",
        "delaytopic.dev/namespace": key.namespace,
        "delaytopic.dev/name": key.name,
    }


def recording(shell: Shell) -> Reconcilers:
    return Reconcilers(RecordingReconciler(shell), Idle(), Idle(), Idle())


if __name__ == "__main__":
    operator_command(recording)()
