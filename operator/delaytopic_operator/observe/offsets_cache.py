"""The times to read the offsets of relays that are away: at once when the last has gone, seldom after that.

Thread-safe. It is lost with the process, which then reads once more than it had to.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Final

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import RecordState
from delaytopic_operator.observe.observation import Observation

SILENT_MS: Final = 3_600_000
"""The time that relays may start without a word until it is read, and the interval at which it is read then."""
AGAIN_MS: Final = 86_400_000
"""Somebody else may have set it meanwhile."""
RETRY_MS: Final = 300_000
"""After it could not be read."""


@dataclass(frozen=True, slots=True)
class _Look:
    at_ms: int
    has_pods: bool
    kept: bool = False


class OffsetsCache:
    """The times at which offsets were read."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._looks: dict[Key, _Look] = {}

    def is_due(self, seen: Observation) -> bool:
        """Tell if offsets are to be read now."""
        record, fleet, pods = seen.route.record, seen.fleet, bool(seen.fleet.living)
        if record is None or record.source is None or record.source.topic_id is None:
            return False
        if seen.route.is_going:
            return fleet.deployment is None and not pods
        if any(page.status is not None for page in fleet.pages) or _begins(seen):
            self._forget(seen.key)
            return False
        return (pods or fleet.desired == 0) and self._is_time(seen.key, pods, seen.now_ms)

    def was_read(self, key: Key, now_ms: int, *, kept: bool) -> None:
        """Remember that offsets were read and written down (`kept`), or could not be."""
        with self._lock:
            before = self._looks.get(key)
            self._looks[key] = _Look(now_ms, before is not None and before.has_pods, kept)

    def _is_time(self, key: Key, has_pods: bool, now_ms: int) -> bool:
        with self._lock:
            last = self._looks.get(key)
            if last is None or last.has_pods != has_pods:
                self._looks[key] = _Look(now_ms - RETRY_MS if not has_pods else now_ms, has_pods)
                return not has_pods
        wait_ms = SILENT_MS if has_pods else AGAIN_MS if last.kept else RETRY_MS
        return now_ms - last.at_ms >= wait_ms

    def _forget(self, key: Key) -> None:
        with self._lock:
            self._looks.pop(key, None)


def _begins(seen: Observation) -> bool:
    """Tell if there have been no relays yet: what is kept of former ones is there already."""
    record = seen.route.record
    living = seen.route.document is not None and seen.fleet.deployment is None and not seen.fleet.pods
    return living and record is not None and record.state is RecordState.ACTIVE
