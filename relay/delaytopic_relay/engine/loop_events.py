"""What the loop reports: to metrics, logs and the status page, without knowing any of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delaytopic_relay.core.commands import Reject, Schedule
from delaytopic_relay.core.departures import Departures
from delaytopic_relay.core.recovery import Plan
from delaytopic_relay.errors import LostOwnership, RelayError


class Journal(Protocol):
    """An observer of the loop; it may not fail and must be quick."""

    def commands(self, leaving: Departures) -> None:
        """Commands with ids took effect."""
        ...

    def sent(
        self, schedules: Sequence[Schedule], rejects: Sequence[Reject], withheld: Sequence[Reject], sent_ms: int
    ) -> None:
        """Schedules were produced, but for those `withheld`, and rejects dead-lettered; it counts once committed."""
        ...

    def committed(self, duration_ms: int) -> None:
        """All that was sent since the last call is committed."""
        ...

    def put(self, duration_ms: int) -> None:
        """The shelf acknowledged a write."""
        ...

    def started_over(self, lost: LostOwnership) -> None:
        """Everything in memory was dropped; what was sent since the last commit does not count."""
        ...

    def recovered(self, shard: int, cause: str, plan: Plan) -> None:
        """A shard goes on, recovered by this plan."""
        ...

    def fenced(self, owner: str) -> None:
        """A former owner can commit nothing any more."""
        ...

    def foreign(self, shard: int, where: str) -> None:
        """Something in the relay's own state was written by somebody else, and skipped; `where` gives its location."""
        ...

    def stuck(self, shard: int, error: RelayError) -> None:
        """A shard cannot be recovered now; it is tried again."""
        ...

    def unavailable(self, error: RelayError) -> None:
        """Kafka or the shelf did not answer; it is tried again."""
        ...
