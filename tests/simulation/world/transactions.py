"""The transaction coordinator: producer epochs, open and decided transactions, offsets that wait for the outcome."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tests.simulation.world.source_log import SourceTransaction

from delaytopic_relay.delivery.reachability import Destination
from delaytopic_relay.errors import Fenced
from delaytopic_relay.ports import Committed

TIMEOUT_MS = 30_000


class State(StrEnum):
    """Of a transaction. A decided one is committed for good, but its markers are not written yet."""

    OPEN = "open"
    DECIDED = "decided"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False)
class Transaction:
    """The contents of one transaction; the records point to it."""

    owner: str
    opened_ms: int
    state: State = State.OPEN
    offsets: dict[int, Committed] = field(default_factory=dict)
    in_source: dict[int, SourceTransaction] = field(default_factory=dict)
    """The part of it that is in the source topic, by shard."""
    number: int = -1
    """Its place among all commits, once committed."""


class Transactions:
    """One transaction at a time for each `transactional.id`."""

    def __init__(
        self,
        committed: Callable[[Transaction], int],
        aborted: Callable[[Transaction], None],
        silent: Callable[[], Container[Destination]],
    ) -> None:
        """`committed` makes the offsets of a transaction the group's, and numbers the commit; `aborted` ends what is
        not; `silent` are the partitions of topics that answer nobody.
        """
        self._silent = silent
        self._unended: dict[str, set[Destination]] = {}
        """The partitions where markers are still to be written, by `transactional.id`."""
        self._committed = committed
        self._aborted = aborted
        self.epochs: dict[str, int] = {}
        self._current: dict[str, Transaction] = {}

    def initialise(self, owner: str) -> int:
        """`init_transactions`: end what is there, and fence every older producer of this id; the new epoch."""
        self._finish(owner)
        if owner in self._current:
            self._abort(owner)
        self.epochs[owner] = self.epochs.get(owner, 0) + 1
        return self.epochs[owner]

    def current(self, owner: str, epoch: int, now_ms: int) -> Transaction:
        """The producer's open transaction, begun with its first use; raises `Fenced`."""
        self._check(owner, epoch)
        self._finish(owner)
        if owner not in self._current:
            self._current[owner] = Transaction(owner, now_ms)
        return self._current[owner]

    def join(self, owner: str, destination: Destination) -> None:
        """A partition that answers nobody takes part in the transaction, which cannot end before it does."""
        self._unended.setdefault(owner, set()).add(destination)

    def cannot_end(self, owner: str) -> bool:
        """Return whether the last transaction is decided, and no other can begin."""
        silent = self._silent()
        return owner not in self._current and any(each in silent for each in self._unended.get(owner, ()))

    def end(self, owner: str, epoch: int, *, commit: bool, markers_later: bool = False) -> None:
        """End whatever is open under this epoch: a request that comes late does not know which it was meant for.

        Raises `Fenced`.
        """
        self._check(owner, epoch)
        transaction = self._current.get(owner)
        if transaction is None or transaction.state is not State.OPEN:
            return
        if not commit:
            self._abort(owner)
            return
        transaction.state = State.DECIDED
        if not markers_later:
            self._finish(owner)

    def write_markers(self) -> None:
        """Complete whatever is decided."""
        for owner in list(self._current):
            self._finish(owner)

    def expire(self, now_ms: int) -> int:
        """Abort and fence what has been open for too long; how many there were."""
        old = [
            owner
            for owner, transaction in self._current.items()
            if transaction.state is State.OPEN and now_ms - transaction.opened_ms >= TIMEOUT_MS
        ]
        for owner in old:
            self.initialise(owner)
        return len(old)

    def in_doubt(self, partitions: Iterable[int]) -> bool:
        """Return whether the committed offset of one of these shards waits for a transaction."""
        wanted = set(partitions)
        return any(not wanted.isdisjoint(transaction.offsets) for transaction in self._current.values())

    def unfinished(self) -> Mapping[str, Transaction]:
        """Return what is open or decided, by `transactional.id`."""
        return self._current

    def _check(self, owner: str, epoch: int) -> None:
        if epoch != self.epochs.get(owner):
            raise Fenced("a newer producer has this transactional.id")

    def _finish(self, owner: str) -> None:
        transaction = self._current.get(owner)
        if transaction is not None and transaction.state is State.DECIDED:
            del self._current[owner]
            transaction.state = State.COMMITTED
            transaction.number = self._committed(transaction)

    def _abort(self, owner: str) -> None:
        transaction = self._current.pop(owner)
        transaction.state = State.ABORTED
        self._aborted(transaction)
