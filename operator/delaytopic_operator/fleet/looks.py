"""Edge: the looks between two reconciliations of a DelayTopic, at pages of relays and offsets alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.plan import Plan
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
from delaytopic_operator.fleet.steady import Steady, numbers, shown, steady
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.observe.observer import Observer
from delaytopic_operator.report.status import StatusMetrics, StatusWriter

EARLY: Final = 60
"""The part of the time until the next look by which it may come sooner: 250 ms of 15 s."""
WHOLE_MS: Final = 3_600_000
"""The time until the next whole reconciliation, though nothing has changed: a look that overlooks something hides it no
longer than that."""
SHOWN_PER_SECOND: Final = 5
"""The statuses whose numbers are shown anew in a second, of however many DelayTopics: each takes the API server some
20 ms of a processor, and this one several looks."""
SPREAD: Final = 0.1
"""The part of the time until the next look that shows numbers, and until the next whole reconciliation, that comes on
top of it by chance, so that they spread."""


@dataclass(frozen=True, slots=True)
class _Known:
    steady: Steady
    judged_by: Hashable
    until_ms: int
    shows_at_ms: int
    """The time from which a look also shows its numbers in the status."""


class FleetLooks:
    """Thread-safe for different keys; a process that ends forgets all, and reconciles once."""

    def __init__(
        self,
        observer: Observer,
        ledger: ScalingLedger,
        turns: RolloutLimiter,
        writer: StatusWriter,
        metrics: StatusMetrics,
        config: OperatorConfig,
        random: Callable[[], float],
    ) -> None:
        """Show numbers as often as a status may, once per resync at least, and those of `SHOWN_PER_SECOND` at most."""
        self._observer = observer
        self._ledger = ledger
        self._turns = turns
        self._writer = writer
        self._metrics = metrics
        self._interval_ms = min(config.resync.ms, config.status_interval.ms)
        self._poll_ms = config.poll.ms
        self._random = random
        self._lock = Lock()
        self._known: dict[Key, _Known] = {}

    def look(self, key: Key, judged_by: Hashable, now_ms: int, asked_for_ms: int) -> Result | None:
        """Look at the numbers; None where it is time for a reconciliation. Raises `OperatorError`."""
        with self._lock:
            known = self._known.pop(key, None)
        if known is None or judged_by != known.judged_by or now_ms >= known.until_ms:
            return None
        refused = known.steady.seen.route.no_turn
        if refused is not None and not self._turns.still_waits(key, refused, self._observer.rollouts()):
            return None
        before = known.steady.seen
        fleet = replace(before.fleet, asked_for_ms=asked_for_ms, memory=self._ledger.memory(key))
        shows = now_ms >= known.shows_at_ms
        seen = self._observer.look_again(replace(before, now_ms=now_ms, fleet=fleet), in_full=shows)
        # What was read for a status is of the object that was judged, or is not shown.
        if seen is None or (shows and self._observer.judged_by(key) != judged_by):
            return None
        found = numbers(seen, known.steady)
        if found is None:
            return None
        if found.decision is not None:
            self._ledger.settle(key, found.decision, executed=False)
        if shows:
            self._show(seen, shown(seen, known.steady, found))
            known = replace(known, shows_at_ms=now_ms + self._until_shown_ms())
        elif found.decision is not None:
            self._metrics.update_scaling(seen, found.decision)
        with self._lock:
            self._known[key] = known
        is_poll = found.next_at_ms >= seen.now_ms + self._poll_ms
        return Result(found.next_at_ms, seen.route.kafka_cluster, early_ms=self._poll_ms // EARLY if is_poll else 0)

    def note(self, seen: Observation, decided: Plan, outcome: Outcome, judged_by: Hashable) -> None:
        """Remember a reconciliation that found nothing to do; `judged_by` was asked for before it."""
        found = steady(seen, decided) if outcome.failure is None else None
        if found is None:
            return
        until_ms = seen.now_ms + self._spread(WHOLE_MS)
        shows_at_ms = seen.now_ms + self._until_shown_ms()
        with self._lock:
            self._known[seen.key] = _Known(found, judged_by, until_ms, shows_at_ms)

    def _show(self, seen: Observation, decided: Plan) -> None:
        self._writer.report(seen, decided, Outcome(), dry_run=False)
        self._metrics.update(seen, decided, Outcome())

    def _until_shown_ms(self) -> int:
        return self._spread(max(self._interval_ms, len(self._known) * 1_000 // SHOWN_PER_SECOND))

    def _spread(self, interval_ms: int) -> int:
        return int(interval_ms * (1 + SPREAD * self._random()))
