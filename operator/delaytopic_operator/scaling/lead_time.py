"""How long it takes from creating a pod until its relay delivers: image, start, assignment and recovery included."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delaytopic_operator.scaling.signals import FleetSignals

START_MS = 45_000
LAST_STARTS = 20
TRUSTED_STARTS = 5
"""With fewer, the start value is the least: an underestimate makes every burst late."""
SHORTEST_MS, LONGEST_MS = 5_000, 900_000
"""A pod that takes longer waited for something else: a node, or a partition to own."""
MOST_PODS = 64


@dataclass(frozen=True, slots=True)
class LeadTime:
    """The last starts, and the pods that were seen before they delivered."""

    starts_ms: tuple[int, ...] = ()
    waiting: tuple[str, ...] = ()

    def p95_ms(self) -> int:
        """95 of 100 starts took at most this."""
        ordered = sorted(self.starts_ms)
        p95_ms = ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else START_MS
        return p95_ms if len(ordered) >= TRUSTED_STARTS else max(START_MS, p95_ms)

    def observed(self, signals: FleetSignals) -> LeadTime:
        """Take in which pods have begun to deliver.

        Only a pod that was seen before it delivered counts: nobody knows when one that runs already began to.
        """
        if signals.pods is None:
            return self
        pods = dict(signals.pods)
        at_work = {pod: as_of_ms for pod in pods if (as_of_ms := _at_work_ms(pod, signals)) is not None}
        begun = [pod for pod in self.waiting if pod in at_work]
        took_ms = (max(SHORTEST_MS, at_work[pod] - pods[pod]) for pod in begun)
        starts_ms = (*self.starts_ms, *(each for each in took_ms if each <= LONGEST_MS))[-LAST_STARTS:]
        return LeadTime(starts_ms, tuple(sorted(pod for pod in pods if pod not in at_work))[:MOST_PODS])


def _at_work_ms(pod: str, signals: FleetSignals) -> int | None:
    for relay in signals.relays:
        if relay.delivering and (relay.relay == pod or relay.relay.startswith(f"{pod}-")):
            return relay.as_of_ms
    return None
