"""A journal that keeps what the loop reported, for tests to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from delaytopic_api.relay import Ending
from delaytopic_relay.core.commands import Leaving, Reject, Schedule
from delaytopic_relay.core.recovery import Plan
from delaytopic_relay.errors import RelayError, StateInDoubt


class QuietEvents:
    """Implements `LoopEvents`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.errors: list[RelayError] = []
        self.skipped: list[tuple[int, str]] = []

    def commands(self, leaving: Leaving) -> None:
        self.counts.update(superseded=leaving.superseded, cancelled=leaving.cancelled, too_late=leaving.too_late)

    def sent(
        self, schedules: Sequence[Schedule], rejects: Sequence[Reject], withheld: Sequence[Reject], sent_ms: int
    ) -> None:
        self.counts.update(sent=len(schedules) - len(withheld), rejected=len(rejects))

    def recurred(self, left: Sequence[Schedule], missed: int, sent_ms: int) -> None:
        self.counts.update(recurred=len(left), missed=missed)

    def ended(self, outcomes: Mapping[Ending, int]) -> None:
        self.counts.update({str(ending): count for ending, count in outcomes.items()})

    def committed(self, duration_ms: int) -> None:
        self.counts.update(commits=1)

    def put(self, duration_ms: int) -> None:
        self.counts.update(puts=1)

    def reset(self, lost: StateInDoubt) -> None:
        self.counts.update([lost.cause])
        self.errors.append(lost)

    def recovered(self, partition: int, cause: str, plan: Plan) -> None:
        self.counts.update(recovered=1)

    def fenced(self, owner: str) -> None:
        self.counts.update(fenced=1)

    def foreign(self, partition: int, where: str) -> None:
        self.counts.update(foreign=1)
        self.skipped.append((partition, where))

    def stuck(self, partition: int, error: RelayError) -> None:
        self.errors.append(error)

    def unavailable(self, error: RelayError) -> None:
        self.errors.append(error)
