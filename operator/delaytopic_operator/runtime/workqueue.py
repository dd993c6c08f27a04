"""The keys to look at and when: pure, time is an argument. Not thread-safe; `workers` guards it.

The verbs are those of client-go's work queue. A key is there once, however often it is added; the earliest time counts.
It is never processed twice at once: one that is added meanwhile is due again afterwards. No added key is forgotten.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from delaytopic_operator.model.reconciliation import Key

FIRST_BACKOFF_MS: Final = 1_000
LONGEST_BACKOFF_MS: Final = 300_000

Random = Callable[[], float]
"""A function that returns at least 0 and less than 1, such as `random.random`."""


class Group(NamedTuple):
    """Keys that may wait for the same thing: those of a namespace, or of a Kafka cluster."""

    kind: str
    name: str


class WorkQueue:
    """Keys by due time (epoch ms)."""

    def __init__(
        self, random: Random, most_of_namespace: int | None = None, most_of_cluster: int | None = None
    ) -> None:
        """`random` spreads what is tried again.

        So many keys of one namespace, and of one Kafka cluster as far as `done` told, are processed at once: whoever
        makes passes hang, leaves workers to others.
        """
        self._random = random
        self._most = {"namespace": most_of_namespace, "cluster": most_of_cluster}
        self._cluster_of: dict[Key, str] = {}
        self._processing_of: Counter[Group] = Counter()
        self._held: dict[Group, deque[tuple[int, Key]]] = {}
        """The due keys of groups that have as many processed as they may; one comes back for each that is done."""
        self._came_from: dict[Key, Group] = {}
        """The group that a key came back from: where it does not use the place, the next one of the group does."""
        self._groups: dict[Key, tuple[Group, ...]] = {}
        """The groups of the keys that are processed, as they were when they were taken."""
        self._due: dict[Key, int] = {}
        self._heap: list[tuple[int, Key]] = []
        """Every entry of `_due`, and older ones that no longer count."""
        self._early_ms: dict[Key, int] = {}
        """The time by which keys may be taken before they are due; the others may not."""
        self._processing: dict[Key, int] = {}
        self._again: dict[Key, int] = {}
        self._failures: dict[Key, int] = {}

    # -- adding and getting

    def add(self, key: Key, at_ms: int) -> None:
        """Look at the key at `at_ms`, or at an earlier time that it was added for."""
        waiting = self._again if key in self._processing else self._due
        known_ms = waiting.get(key)
        if known_ms is not None and known_ms <= at_ms:
            return
        waiting[key] = at_ms
        if waiting is self._due:
            self._early_ms.pop(key, None)
            self._push(at_ms, key)

    def get(self, now_ms: int, *, early: bool = False) -> Key | None:
        """Return the key that has been due for longest, or None; it is processed until `done` or `add_rate_limited`.

        With `early`, it is the next one where that may be taken before it is due.
        """
        due_ms = self.next_due_ms(now_ms)
        if due_ms is None or (due_ms > now_ms and not (early and self._may_come_now(due_ms, now_ms))):
            return None
        _, key = heappop(self._heap)
        del self._due[key]
        self._early_ms.pop(key, None)
        self._processing[key] = now_ms
        groups = self._groups[key] = self._groups_of(key)
        self._processing_of.update(groups)
        self._pass_on(key, groups)
        return key

    def done(self, key: Key, next_at_ms: int | None = None, cluster: str | None = None, early_ms: int = 0) -> None:
        """The key was processed with success: earlier failures are forgotten. `next_at_ms`: look at it again then, or
        by `early_ms` before.

        `cluster` is the Kafka that it was found to be of.
        """
        self._failures.pop(key, None)
        if cluster is None:
            self._cluster_of.pop(key, None)
        else:
            self._cluster_of[key] = cluster
        self._come_back(key, next_at_ms)
        if early_ms and self._due.get(key) == next_at_ms:
            self._early_ms[key] = early_ms

    def add_rate_limited(self, key: Key, now_ms: int, not_before_ms: int | None = None) -> int:
        """The key was processed without success: it is due again, later each time. Return when.

        `not_before_ms`: the other side asked not to be bothered until then.
        """
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        at_ms = max(now_ms + backoff_ms(failures, self._random()), not_before_ms or 0)
        self._come_back(key, at_ms)
        return at_ms

    def clear(self) -> None:
        """Forget everything but which keys are processed: somebody else looks after them now."""
        self._due.clear()
        self._heap.clear()
        self._early_ms.clear()
        self._held.clear()
        self._came_from.clear()
        self._again.clear()
        self._failures.clear()

    # -- looking

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next key is due, of those that are due now one that may be taken; or None."""
        while self._heap:
            due_ms, key = self._heap[0]
            if self._due.get(key) != due_ms:
                heappop(self._heap)
            elif due_ms <= now_ms and (full := self._full_group(key)) is not None:
                self._held.setdefault(full, deque()).append(heappop(self._heap))
                self._pass_on(key, (full,))
            else:
                return due_ms
        return None

    def depth(self, now_ms: int) -> int:
        """Return how many keys are due and not processed yet."""
        return sum(due_ms <= now_ms for due_ms in self._due.values())

    def oldest_age_ms(self, now_ms: int) -> int:
        """Return for how long the first key in line has been due; 0 if none is."""
        return max(0, now_ms - min(self._due.values(), default=now_ms))

    def processing(self) -> dict[Key, int]:
        """The keys that are processed now, and since when."""
        return dict(self._processing)

    def failures(self, key: Key) -> int:
        """Return how often in a row the key failed."""
        return self._failures.get(key, 0)

    # -- inside

    def _come_back(self, key: Key, at_ms: int | None) -> None:
        del self._processing[key]
        for group in self._groups.pop(key):
            self._processing_of[group] -= 1
            self._let_go(group)
            if not self._processing_of[group]:
                del self._processing_of[group]
        for due_ms in (self._again.pop(key, None), at_ms):
            if due_ms is not None:
                self.add(key, due_ms)

    def _may_come_now(self, due_ms: int, now_ms: int) -> bool:
        key = self._heap[0][1]
        return due_ms - self._early_ms.get(key, 0) <= now_ms and self._full_group(key) is None

    def _groups_of(self, key: Key) -> tuple[Group, ...]:
        cluster = self._cluster_of.get(key)
        namespace = Group("namespace", key.namespace)
        return (namespace, Group("cluster", cluster)) if cluster is not None else (namespace,)

    def _full_group(self, key: Key) -> Group | None:
        """Return a group of the key that has as many processed as it may."""
        for group in self._groups_of(key):
            most = self._most[group.kind]
            if most is not None and self._processing_of[group] >= most:
                return group
        return None

    def _pass_on(self, key: Key, groups: Collection[Group]) -> None:
        """Give the place in a group that the key came back from to the next one, unless the key is in the group."""
        group = self._came_from.pop(key, None)
        if group is not None and group not in groups:
            self._let_go(group)

    def _let_go(self, group: Group) -> None:
        """Put back the first of the group that is still due at its time, and forget it when there is none."""
        held = self._held.get(group, deque())
        while held:
            due_ms, key = held.popleft()
            if self._due.get(key) == due_ms:
                heappush(self._heap, (due_ms, key))
                self._came_from[key] = group
                break
        if not held:
            self._held.pop(group, None)

    def _push(self, at_ms: int, key: Key) -> None:
        heappush(self._heap, (at_ms, key))
        if len(self._heap) > 2 * len(self._due) + 64:
            self._heap = [(due_ms, key) for key, due_ms in self._due.items()]
            heapify(self._heap)


def backoff_ms(failures: int, random: float) -> int:
    """Return how long to wait after so many failures in a row: at least 1 s, doubled each time, at most 5 min.

    Half of it is chance, so that those that failed together are not tried together.
    """
    upper_ms = min(LONGEST_BACKOFF_MS, 2 * FIRST_BACKOFF_MS << min(failures - 1, 16))
    return upper_ms // 2 + int(upper_ms // 2 * random)


def spread(keys: Iterable[Key], now_ms: int, width_ms: int, random: Random) -> dict[Key, int]:
    """A time for each key, by chance within `width_ms` from now on: for looks at everything."""
    return {key: now_ms + int(width_ms * random()) for key in keys}
