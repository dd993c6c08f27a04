"""The /pending document: pure, from the last status, what the loop copied and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from delaytopic_api.relay import (
    LARGEST_ANSWER_BYTES,
    LONGEST_SHOWN_BYTES,
    PendingContent,
    PendingList,
    PendingRecord,
    PendingShard,
    RelayStatus,
    ShardState,
    ShardStatus,
    text_or_base64,
)
from delaytopic_relay.core.calendar import bytes_of
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.search import Listed, PendingResult
from delaytopic_relay.pending.snapshot import Copies

REPLAYING = "records that were in memory before are being read again; they are not all listed yet"
RECORD_BYTES = 500
"""The memory of a record in a list, beside its texts: about as much as a reader needs for it."""
ELSEWHERE = "not with this relay: ask the others of its group"


class Subject(NamedTuple):
    """The topics of the relay; `target` is that of records that name no other."""

    source: str
    source_partitions: int
    target: str


def pending_list(
    status: RelayStatus, subject: Subject, query: PendingQuery, copies: Copies, listing: PendingResult
) -> PendingList:
    """Counts from the status, records from the listing."""
    shards = list(_shards(status, subject, query, copies))
    lacking = next((shard.message for shard in shards if _is_lacking(shard, query, copies)), None)
    shown = _shown(listing.records[: query.limit], query.most_bytes)
    more = len(listing.records) > len(shown)
    limited = f"there are more than the limit of {query.limit}" if more else None
    if more and len(shown) < query.limit:
        room = f"{LARGEST_ANSWER_BYTES >> 20} MiB" if query.most_bytes is None else f"{query.most_bytes} bytes"
        limited = f"there are more than the {room} of an answer"
    counted = _counted(status, query)
    return PendingList(
        relay=status.relay,
        delay_topic=status.delay_topic,
        source=subject.source,
        source_partitions=subject.source_partitions,
        as_of_ms=status.as_of_ms,
        pending=counted.pending - counted.withdrawn,
        overdue=counted.overdue,
        next_due_ms=counted.next_due_ms,
        ingest_lag=counted.ingest_lag,
        due_histogram=counted.due_histogram,
        due_before_ms=query.asked_before_ms,
        limit=query.limit,
        complete=not more and listing.cut_ms is None and lacking is None,
        limited=more,
        listed_until_ms=None if more else listing.cut_ms,
        message=limited or listing.why or lacking,
        shards=shards,
        records=[_record(listed, subject.target) for listed in shown],
    )


def _shown(records: Sequence[Listed], most_bytes: int | None) -> Sequence[Listed]:
    """Return the first, as many as have room in an answer; the first one always has."""
    total = 0
    for number, listed in enumerate(records):
        total += bytes_of(listed.whole) if listed.whole is not None else 0
        total += _bytes_of_texts(listed) if most_bytes is not None else 0
        if total > (most_bytes or LARGEST_ANSWER_BYTES) and number:
            return records[:number]
    return records


def _bytes_of_texts(listed: Listed) -> int:
    key = min(len(listed.key or b""), LONGEST_SHOWN_BYTES)
    return RECORD_BYTES + len(listed.id or b"") + key + len(listed.target or "")


def _content(schedule: Schedule) -> PendingContent:
    return PendingContent.of(schedule.key, schedule.value, schedule.headers or (), schedule.timestamp_ms)


def _counted(status: RelayStatus, query: PendingQuery) -> RelayStatus | ShardStatus:
    """Return the counts of what was asked for: the relay's, or the shard's; a shard that is not here has none."""
    if query.partition is None:
        return status
    nothing = ShardStatus(
        partition=query.partition,
        state=ShardState.RECOVERING,
        committed_offset=0,
        position=0,
        pending=0,
        overdue=0,
        ingest_lag=0,
    )
    return next((shard for shard in status.shards if shard.partition == query.partition), nothing)


def _is_lacking(shard: PendingShard, query: PendingQuery, copies: Copies) -> bool:
    """Return whether records are missing that were asked for: of our own shards, or of the one that was named."""
    ours = shard.partition in copies.shards or shard.partition in copies.waiting
    return shard.message is not None and (ours or query.partition is not None)


def _shards(status: RelayStatus, subject: Subject, query: PendingQuery, copies: Copies) -> Iterator[PendingShard]:
    counts = {shard.partition: shard.pending - shard.withdrawn for shard in status.shards}
    known = {*range(subject.source_partitions), *copies.shards, *copies.waiting}
    for partition in sorted(known) if query.partition is None else [query.partition]:
        copy = copies.shards.get(partition)
        yield PendingShard(
            partition=partition,
            listed=copy is not None,
            pending=counts.get(partition),
            ingested=copy.ingested if copy is not None else None,
            message=_message(partition, copies),
        )


def _message(partition: int, copies: Copies) -> str | None:
    copy = copies.shards.get(partition)
    if copy is not None:
        return REPLAYING if copy.replaying else None
    waiting: Mapping[int, str] = copies.waiting
    return f"being recovered ({waiting[partition]}); ask again" if partition in waiting else ELSEWHERE


def _record(listed: Listed, target: str) -> PendingRecord:
    id_text, id_base64 = text_or_base64(listed.id)
    key_text, key_base64 = text_or_base64(listed.key)
    return PendingRecord(
        expires_ms=listed.expires_ms,
        content=None if listed.whole is None else _content(listed.whole),
        due_ms=listed.due_ms,
        partition=listed.partition,
        offset=listed.offset,
        target=listed.target or target,
        id=id_text,
        id_base64=id_base64,
        key=key_text,
        key_base64=key_base64,
        key_bytes=None if listed.key is None else len(listed.key),
        value_bytes=listed.value_bytes,
    )
