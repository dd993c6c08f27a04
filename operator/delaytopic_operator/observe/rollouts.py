"""The DelayTopics whose relays start anew now, and how the last ones ended, of all Deployments seen, kept up to date at
the cost of changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from delaytopic_operator.kube.indexers import owner_of
from delaytopic_operator.kube.object_cache import ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import Ended, Rollouts, stopped
from delaytopic_operator.observe.fleet import Fleet
from delaytopic_operator.resources import image_of
from delaytopic_operator.resources.identity import IN_TURN


class _Entry(NamedTuple):
    version: int
    is_of_relays: bool = False
    rolling: Key | None = None
    """Its DelayTopic, while it is rolled out."""
    ended: Ended | None = None
    """Its last turn, if it had one and nothing started it anew since."""


class RolloutTracker:
    """Thread-safe. All that it knows is in the Deployments: it lasts longer than the process."""

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
            known[ref] = self._read(ref, versions[ref])
        self._entries = known
        rolling = frozenset(entry.rolling for entry in known.values() if entry.rolling is not None)
        ended = stopped(entry.ended for entry in known.values() if entry.ended is not None)
        self._rollouts = Rollouts(rolling, ended, sum(entry.is_of_relays for entry in known.values()))

    def _read(self, ref: Ref, version: int) -> _Entry:
        document = self._store.get(kinds.DEPLOYMENT, ref.namespace, ref.name)
        key = owner_of(document) if document is not None else None
        if document is None or key is None:
            return _Entry(version)
        is_rolling, is_stuck = Fleet(document, (), (), None).rolling is not None, _is_stuck(document)
        if is_rolling and not is_stuck:
            return _Entry(version, True, key)
        if IN_TURN not in (document["metadata"].get("annotations") or {}):
            return _Entry(version, True)
        return _Entry(version, True, ended=Ended(_since_ms(document), not is_rolling, key, image_of(document)))


def _is_stuck(deployment: Mapping[str, Any]) -> bool:
    """Tell whether Kubernetes has given up on a rollout: whose pods do not start holds nobody else up for ever."""
    status = deployment.get("status") or {}
    is_of_now = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return is_of_now and _progressing(deployment).get("status") == "False"


def _since_ms(deployment: Mapping[str, Any]) -> int:
    """Return the time at which a rollout ended: Kubernetes says so once, and nothing more of it afterwards."""
    said = _progressing(deployment).get("lastUpdateTime")
    return instant_ms(said) if said else 0


def _progressing(deployment: Mapping[str, Any]) -> Mapping[str, Any]:
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == "Progressing"), {})
