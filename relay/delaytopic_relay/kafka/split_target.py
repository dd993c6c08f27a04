"""At least once over bucket topics: records leave at once, while shelf and progress keep to transactions. Pure.

Readers of the target need not wait for a commit; what a crash repeats is deliveries, and never more than one tick of
them. What is on the shelf and what is committed always agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.outbound import Outgoing
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.ports import GroupMetadata, Target


class SplitTarget:
    """Implements `Target` over two others: one without transactions for what is delivered, one with."""

    def __init__(self, plain: Target, ledger: Target) -> None:
        """`ledger` takes the shelf's records and the progress."""
        self._plain = plain
        self._ledger = ledger

    @property
    def owner(self) -> str:
        """The `transactional.id`."""
        return self._ledger.owner

    def begin(self) -> None:
        """Open a transaction for shelf and progress."""
        self._ledger.begin()

    def send(self, records: Sequence[Outgoing]) -> None:
        """Produce records that are visible at once."""
        self._plain.send(records)

    def store(self, records: Sequence[Outgoing]) -> None:
        """Produce the shelf's records in the transaction."""
        self._ledger.store(records)

    def settle(self) -> list[Refusal]:
        """Wait until all that was delivered, and then all that was stored, is acknowledged."""
        return [*self._plain.settle(), *self._ledger.settle()]

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        """Commit what was stored, with the progress; deliveries were settled before."""
        self._ledger.commit(progress, group)

    def abort(self) -> None:
        """Abort what was stored; what was delivered stays."""
        self._plain.abort()
        self._ledger.abort()

    def fence(self, owner: str) -> None:
        """See `Target.fence`."""
        self._ledger.fence(owner)

    def replace(self) -> None:
        """Two new producers."""
        self._plain.replace()
        self._ledger.replace()

    def close(self) -> None:
        """Give back connections."""
        self._plain.close()
        self._ledger.close()
