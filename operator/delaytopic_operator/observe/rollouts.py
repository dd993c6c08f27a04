"""The DelayTopics whose relays start anew now, and how the last ones ended, of all Deployments seen, kept up to date at
the cost of changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from delaytopic_operator.kube.indexers import owner_of
from delaytopic_operator.kube.object_cache import NEVER, ObjectCache, Ref
from delaytopic_operator.model import kinds
from delaytopic_operator.model.conditions import instant_ms
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import Ended, Rollouts, stopped
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.resources import image_of
from delaytopic_operator.resources.identity import IN_TURN


class RolloutTracker:
    """Thread-safe. All that it knows is in the Deployments: it lasts longer than the process."""

    def __init__(self, store: ObjectCache) -> None:
        """Take `store`, where Deployments are seen."""
        self._store = store
        self._lock = Lock()
        self._revision = NEVER
        self._relays: set[Ref] = set()
        self._rolling: dict[Ref, Key] = {}
        self._ended: dict[Ref, Ended] = {}
        """The last turn of each that had one, and that nothing has started anew since."""
        self._rollouts = Rollouts()

    def rollouts(self) -> Rollouts:
        """List the DelayTopics whose relays start anew, or should have."""
        with self._lock:
            if self._store.revision(kinds.DEPLOYMENT) != self._revision:
                news = self._store.news(kinds.DEPLOYMENT, self._revision)
                self._revision = news.revision
                for ref in {*news.versions, *(self._relays if news.is_all else ())}:
                    self._read(ref)
                rolling, ended = frozenset(self._rolling.values()), stopped(self._ended.values())
                self._rollouts = Rollouts(rolling, ended, len(self._relays))
            return self._rollouts

    def _read(self, ref: Ref) -> None:
        self._relays.discard(ref)
        self._rolling.pop(ref, None)
        self._ended.pop(ref, None)
        document = self._store.get(kinds.DEPLOYMENT, ref.namespace, ref.name)
        key = owner_of(document) if document is not None else None
        if document is None or key is None:
            return
        self._relays.add(ref)
        is_rolling = FleetFacts(document, (), (), None).rolling is not None
        if is_rolling and not _is_stuck(document):
            self._rolling[ref] = key
        elif IN_TURN in (document["metadata"].get("annotations") or {}):
            self._ended[ref] = Ended(_since_ms(document), not is_rolling, key, image_of(document))


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
