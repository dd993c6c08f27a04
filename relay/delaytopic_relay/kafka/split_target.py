"""A target for at least once over bucket topics: deliveries leave at once, the backlog keeps to transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from delaytopic_relay.core.commands import Record
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.delivery.batches import Batch
from delaytopic_relay.delivery.outcomes import Places
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.ports import GroupMetadata, InVain, Target, never


class SplitTarget:
    """A `Target` over two others, for at least once over bucket topics.

    Records leave at once, while backlog and progress keep to transactions, and always agree. Readers of the target need
    not wait for a commit. A crash repeats deliveries, and never more than one tick of them.
    """

    def __init__(self, plain: Target, ledger: Target) -> None:
        """`ledger` takes the backlog's records and the progress."""
        self._plain = plain
        self._ledger = ledger

    @property
    def owner(self) -> str:
        """The `transactional.id`."""
        return self._ledger.owner

    def begin(self) -> None:
        """Open a transaction for backlog and progress."""
        self._ledger.begin()

    @property
    def packs(self) -> bool:
        """Return whether `send` takes batches of plain schedules, too."""
        return self._plain.packs

    def send(self, records: Sequence[Record | Batch]) -> None:
        """Produce records that are visible at once."""
        self._plain.send(records)

    def take_places(self) -> Places:
        """Return where what was delivered is."""
        return self._plain.take_places()

    def compress(self) -> None:
        """Compress what is delivered from now on."""
        self._plain.compress()

    def store(self, records: Sequence[Record]) -> None:
        """Produce the backlog's records, and outcomes, in the transaction."""
        self._ledger.store(records)

    def flush(self, in_vain: InVain = never) -> list[Refusal]:
        """Wait until all that was delivered, and then all that was stored, is acknowledged."""
        return [*self._plain.flush(in_vain), *self._ledger.flush(in_vain)]

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
