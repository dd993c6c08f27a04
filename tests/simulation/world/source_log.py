"""One partition of the source topic: offsets, transactions with their markers, the last stable offset, retention."""

from __future__ import annotations

from dataclasses import dataclass

from delaytopic_api.records import Headers


@dataclass(slots=True)
class SourceRecord:
    """A source record, with the accessors of the Kafka client's message."""

    shard: int
    place: int
    time_ms: int
    record_key: bytes | None
    record_value: bytes | None
    record_headers: Headers | None
    transaction: SourceTransaction | None = None
    epoch: int = 0

    def topic(self) -> str:
        return "source"

    def partition(self) -> int:
        return self.shard

    def offset(self) -> int:
        return self.place

    def timestamp(self) -> tuple[int, int]:
        return (2, self.time_ms)

    def key(self) -> bytes | None:
        return self.record_key

    def value(self) -> bytes | None:
        return self.record_value

    def headers(self) -> Headers | None:
        return list(self.record_headers) if self.record_headers is not None else None


@dataclass(slots=True)
class SourceTransaction:
    """Of some application that produces to the source; `committed` is None while it is open."""

    first: int
    committed: bool | None = None
    number: int | None = None
    """The commit of a relay's, among all commits."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Ends a transaction; takes an offset, and nobody ever reads it."""

    committed: bool
    epoch: int = 0


class SourceLog:
    """Appended to by applications, with the broker's time; read by relays as `read_committed`."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        self.entries: list[SourceRecord | Marker] = []
        self.low = 0
        self.epoch = 0
        """The leader epoch of what is appended."""
        self._open: list[SourceTransaction] = []

    def append(
        self,
        time_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        transaction: SourceTransaction | None = None,
    ) -> int:
        """The new record's offset."""
        place = len(self.entries)
        self.entries.append(SourceRecord(self.shard, place, time_ms, key, value, headers, transaction, self.epoch))
        return place

    def begin(self) -> SourceTransaction:
        """Open a transaction: nothing from here on is stable before it ends."""
        transaction = SourceTransaction(len(self.entries))
        self._open.append(transaction)
        return transaction

    def end(self, transaction: SourceTransaction, *, commit: bool) -> None:
        """Write the marker."""
        if transaction not in self._open:
            return  # the log was cut, and what was open in it is aborted
        transaction.committed = commit
        self._open.remove(transaction)
        self.entries.append(Marker(commit, self.epoch))

    @property
    def stable_end(self) -> int:
        """The last stable offset: where a `read_committed` reader stops."""
        return min((transaction.first for transaction in self._open), default=len(self.entries))

    @property
    def end_of_records(self) -> int:
        """The offset after the last accepted record; markers and aborted records may follow."""
        found = (entry for entry in reversed(self.entries) if isinstance(entry, SourceRecord) and _counts(entry))
        return next((record.place + 1 for record in found), 0)

    def read(self, position: int, limit: int) -> tuple[list[SourceRecord], int]:
        """Up to `limit` stable records that were not aborted, and where to go on."""
        found: list[SourceRecord] = []
        end = self.stable_end
        while position < end and len(found) < limit:
            entry = self.entries[position]
            position += 1
            if isinstance(entry, SourceRecord) and _counts(entry):
                found.append(entry)
        return found, position

    def end_of_epoch(self, epoch: int) -> int:
        """Return where a later epoch begins, or the end."""
        later = (place for place, entry in enumerate(self.entries) if entry.epoch > epoch)
        return next(later, len(self.entries))

    def is_cut_below(self, position: int, epoch: int, behind: int) -> bool:
        """Return whether an epoch ends in front of the place behind its last record, or a record, or the end, is found
        between that place and a position.

        So do clients that validate where they begin, which read no aborted record.
        """
        if epoch >= 0 and behind > self.low and self.end_of_epoch(epoch) < behind:
            return True
        found, _ = self.read(max(behind, self.low), 1)
        return (found[0].place if found else self.stable_end) < position

    def first_at(self, time_ms: int) -> int | None:
        """Return the first offset of a record with this timestamp or a later one."""
        there = enumerate(self.entries[self.low :], self.low)
        return next(
            (place for place, entry in there if isinstance(entry, SourceRecord) and entry.time_ms >= time_ms), None
        )

    def copied(self) -> SourceLog:
        """Return the log as it is now, with the same records."""
        log = SourceLog(self.shard)
        log.entries, log.low, log.epoch = [*self.entries], self.low, self.epoch
        return log

    def cut(self, end: int) -> None:
        """An unclean election: what lies behind is gone, and what follows is of a later epoch."""
        for transaction in [*self._open]:
            self.end(transaction, commit=False)
        del self.entries[end:]
        self.epoch += 2

    def delete_before(self, offset: int) -> None:
        """Retention: what is below is gone for readers."""
        self.low = max(self.low, offset)

    def accepted(self) -> list[SourceRecord]:
        """Every record that was ever accepted, deleted by retention or not."""
        return [entry for entry in self.entries if isinstance(entry, SourceRecord) and _counts(entry)]


def _counts(entry: SourceRecord) -> bool:
    return entry.transaction is None or entry.transaction.committed is True
