"""The DelayTopics whose relays start anew now, of all Deployments seen, kept up to date at the cost of changes."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from delaytopic_operator.kube.indexers import owner_of
from delaytopic_operator.kube.object_cache import ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.observe.fleet import Fleet


class _Entry(NamedTuple):
    version: int
    rolling: Key | None
    """Its DelayTopic, while it is rolled out."""
    is_stuck: bool = False


class Rollouts(NamedTuple):
    """The DelayTopics whose relays start anew now, and those whose rollouts Kubernetes has given up on."""

    rolling: frozenset[Key] = frozenset()
    stuck: frozenset[Key] = frozenset()


class RolloutTracker:
    """Thread-safe."""

    def __init__(self, store: ObjectCache) -> None:
        """Take `store`, where Deployments are seen."""
        self._store = store
        self._lock = Lock()
        self._revision: int | None = None
        self._entries: dict[Ref, _Entry] = {}
        self._rollouts = Rollouts()

    def rollouts(self) -> Rollouts:
        """List the DelayTopics whose relays start anew, or should have."""
        with self._lock:
            revision = self._store.revision(kinds.DEPLOYMENT)
            if revision != self._revision:
                self._read_again()
                self._revision = revision
            return self._rollouts

    def _read_again(self) -> None:
        versions = self._store.versions(kinds.DEPLOYMENT)
        known = {ref: entry for ref, entry in self._entries.items() if versions.get(ref) == entry.version}
        for ref in versions.keys() - known.keys():
            known[ref] = _Entry(versions[ref], *self._read(ref))
        self._entries = known
        self._rollouts = Rollouts(
            frozenset(entry.rolling for entry in known.values() if entry.rolling is not None and not entry.is_stuck),
            frozenset(entry.rolling for entry in known.values() if entry.rolling is not None and entry.is_stuck),
        )

    def _read(self, ref: Ref) -> tuple[Key | None, bool]:
        document = self._store.get(kinds.DEPLOYMENT, ref.namespace, ref.name)
        if document is None or Fleet(document, (), (), None).rolling is None:
            return None, False
        return owner_of(document), _is_stuck(document)


def _is_stuck(deployment: Mapping[str, Any]) -> bool:
    """Tell whether Kubernetes has given up on a rollout: whose pods do not start holds nobody else up for ever."""
    status = deployment.get("status") or {}
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or ()}
    is_of_now = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return is_of_now and conditions.get("Progressing") == "False"
