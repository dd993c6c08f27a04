"""Tests of what a listing finds in bucket topics: all that a shard would deliver, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.bucket_log import MemoryBucketLog
from tests.support.relay.backlog.shards import bucket_shard
from tests.support.relay.schedules import cancel, schedule

from delaytopic_relay.backlog.kafka import reader as bucket_browsing
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.reader import BucketPendingReader
from delaytopic_relay.backlog.kafka.segments import encode_bucket_segment, pack_parts
from delaytopic_relay.core.commands import Command
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.search import PendingResult, list_pending
from delaytopic_relay.pending.snapshot import ShardCopy, copy_of

NOW_MS = 1_000_000_000
HOUR_MS = 3_600_000
MARK = 7
RULES = BucketRules(horizon_ms=1_000, buckets=24, source_id=MARK)
ALL = PendingQuery(limit=1_000)


class Run:
    """A shard, and the log that it writes to."""

    def __init__(self) -> None:
        self.log = MemoryBucketLog()
        self.shard = bucket_shard(RULES)
        self.shard.advance(NOW_MS)

    def ingest(self, commands: Sequence[Command], now_ms: int = NOW_MS) -> None:
        known = self.shard.look_up(self.shard.ids.unknown(commands))
        self.shard.ingest(commands, commands[-1].offset + 1, known)
        put = self.shard.put()
        for segment in put.segments:
            self.log.records[0, segment.bucket].append(segment.data)
        self.shard.put_done(put, now_ms)

    def copy(self, query: PendingQuery = ALL) -> ShardCopy:
        return copy_of(self.shard, query)

    def listed(self, query: PendingQuery = ALL, copy: ShardCopy | None = None) -> PendingResult:
        taken = copy or self.copy(query)
        reader = BucketPendingReader(self.log, {0: taken.stored.state}, MARK)
        return list_pending([taken], lambda: reader, query)


def offsets(found: PendingResult) -> list[int]:
    return [record.offset for record in found.records]


@QUICK
@given(st.lists(st.integers(0, 20 * 86_400_000), min_size=1, max_size=40), st.integers(1, 50))
def test_the_first_records_are_listed_wherever_they_wait(delays_ms: list[int], limit: int) -> None:
    run = Run()
    for offset, delay_ms in enumerate(delays_ms):
        run.ingest([schedule(NOW_MS + delay_ms, offset)], NOW_MS + offset)

    found = run.listed(PendingQuery(limit=limit))

    due = sorted((NOW_MS + delay_ms, 0, offset) for offset, delay_ms in enumerate(delays_ms))
    assert [record[:3] for record in found.records] == due[: limit + 1]
    assert found.cut_ms is None


def test_what_is_written_and_moved_after_the_copy_changes_nothing() -> None:
    run = Run()
    run.ingest([schedule(NOW_MS + HOUR_MS, 0), schedule(NOW_MS + 2 * HOUR_MS, 1)])
    copy = run.copy()

    run.ingest([schedule(NOW_MS + HOUR_MS, 2)])

    assert offsets(run.listed(copy=copy)) == [0, 1]
    assert offsets(run.listed()) == [0, 2, 1]


def test_replaced_and_cancelled_records_are_left_out() -> None:
    run = Run()
    run.ingest([schedule(NOW_MS + HOUR_MS, 0, b"a"), schedule(NOW_MS + HOUR_MS, 1, b"b"), schedule(NOW_MS + 9, 2)])
    run.ingest([schedule(NOW_MS + 2 * HOUR_MS, 3, b"a"), cancel(4, b"b")])

    assert offsets(run.listed()) == [2, 3]


def test_a_bucket_is_read_no_further_than_something_in_it_can_be_among_the_first() -> None:
    run = Run()
    for offset in range(40):
        now_ms = NOW_MS + offset * 60_000
        run.shard.advance(now_ms)
        run.ingest([schedule(now_ms + HOUR_MS, offset)], now_ms)

    found = run.listed(PendingQuery(limit=2))

    assert offsets(found) == [0, 1, 2]
    assert run.log.read_to == {(0, 11): 30}


def test_records_of_strangers_and_of_another_source_are_left_out() -> None:
    run = Run()
    bucket = 11
    (other,) = pack_parts([schedule(NOW_MS + HOUR_MS, 9)], 1 << 20)
    run.log.records[0, bucket] = [b"hello", encode_bucket_segment(MARK + 1, 0, 0, other)]

    run.ingest([schedule(NOW_MS + HOUR_MS, 0)])

    assert offsets(run.listed()) == [0]
    assert len(run.log.records[0, bucket]) == 3


def test_segments_that_are_missing_end_the_list_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_browsing, "PATIENCE_S", 0)
    run = Run()
    run.ingest([schedule(NOW_MS + 5, 0), schedule(NOW_MS + HOUR_MS, 1)])
    run.log.records.clear()

    found = run.listed()

    assert (offsets(found), found.cut_ms) == ([0], NOW_MS + HOUR_MS)
    assert found.why == "the backlog cannot be read: bucket 11: nothing arrived for 0 s"


def test_the_reader_is_closed() -> None:
    run = Run()
    run.ingest([schedule(NOW_MS + HOUR_MS, 0)])

    run.listed()

    assert run.log.closed
