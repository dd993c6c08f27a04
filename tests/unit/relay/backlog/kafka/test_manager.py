"""Tests of what is read from bucket topics: what is ours and there; and what follows when something is not."""

from __future__ import annotations

import pytest
from tests.support.relay.backlog.bucket_log import MemoryBucketLog
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.manager import MISSING_MS
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import EARLY_BYTES, BucketRules
from delaytopic_relay.backlog.kafka.segments import encode_bucket_segment, encode_id, pack_parts
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.backlog.protocol import EmptyReader
from delaytopic_relay.backlog.signing import MAGIC, UNSIGNED, SegmentSigner, bucket_place
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import NOTHING_DELIVERED
from delaytopic_relay.core.entries import size
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, Plan

MARK, OTHER_MARK = 7, 8
PLENTY = 1 << 30


class Run:
    """Shards of one relay, each with one segment that is to be read now."""

    def __init__(self, *partitions: int, signer: SegmentSigner = UNSIGNED, early_bytes: int = EARLY_BYTES) -> None:
        self.world = World()
        self.log = MemoryBucketLog()
        self.events = QuietEvents()
        rules = BucketRules(1_000, buckets=2, source_id=MARK, early_bytes=early_bytes, key=signer.key_id)
        clock, names = WorldClock(self.world), BucketNames("shop")
        self.backlog = BucketBacklog(self.log, names, rules, clock, self.events, lambda _: EmptyReader(), signer)
        self.manager = self.backlog.manager
        self.shards = {partition: self.open(partition) for partition in partitions}

    @property
    def now_ms(self) -> int:
        return self.world.now_ms

    def progress(self) -> Progress:
        waiting = BucketState(written=1, records=1, head_ms=self.now_ms, last_ms=self.now_ms)
        return Progress(9, 9, NOTHING_DELIVERED, "", BucketsState(9, 0, (waiting, BucketState())))

    def open(self, partition: int) -> BucketShard:
        self.backlog.prepare([partition])
        return self.backlog.open(partition, Plan(self.progress()))

    def segment(self, number: int, offset: int, mark: int = MARK) -> bytes:
        (part,) = pack_parts([schedule(self.now_ms + 500, offset)], 1 << 20)
        return encode_bucket_segment(mark, number, self.now_ms, part)

    def load(self) -> None:
        self.manager.load_next([*self.shards.values()], PLENTY)

    def in_memory(self, partition: int) -> list[int]:
        taken = self.shards[partition].calendar.take(self.now_ms + 10_000, 100)
        return [entry.offset for entry in taken]


def test_a_segment_of_another_source_is_not_taken_for_the_one_with_its_number() -> None:
    run = Run(0)
    run.log.records[0, 0] = [run.segment(0, 5, OTHER_MARK), run.segment(0, 6)]

    run.load()

    assert run.in_memory(0) == [6]


KEY, OTHER_KEY = SegmentSigner("shop", [b"key"]), SegmentSigner("shop", [b"other key"])
PLACE = bucket_place(0, 0)


def test_with_a_key_only_what_it_has_signed_for_this_place_is_read_and_others_are_named() -> None:
    # Given segments with the right number, of which the last is the genuine one
    run = Run(0, signer=KEY)
    forged = run.segment(0, 5)
    run.log.records[0, 0] = [
        forged,
        OTHER_KEY.sign(PLACE, forged),
        SegmentSigner("payments", [b"key"]).sign(PLACE, forged),
        KEY.sign(bucket_place(1, 0), forged),
        KEY.sign(bucket_place(0, 1), forged),
        b"\x02 a newer version, says a byte",
        KEY.sign(PLACE, run.segment(0, 6)),
    ]

    run.load()

    assert (run.in_memory(0), run.manager.unreadable) == ([6], {})
    elsewhere = "no key of this backend has signed it, or not for this place"
    assert run.events.skipped == [
        (0, f"the topic shop.delay.0[0], offset {offset}: {why}")
        for offset, why in enumerate(
            ["it is not signed", *[elsewhere] * 4, "it starts with byte 0x02, which no segment does"]
        )
    ]


@pytest.mark.parametrize("signer", [UNSIGNED, KEY], ids=["unsigned", "signed"])
def test_a_byte_at_the_head_of_a_record_keeps_no_shard_from_its_segments(signer: SegmentSigner) -> None:
    run = Run(0, signer=signer)
    run.log.records[0, 0] = [bytes([byte]) + bytes(40) for byte in range(256)] + [signer.sign(PLACE, run.segment(0, 6))]

    for _ in range(20):
        run.load()

    assert (run.in_memory(0), run.manager.unreadable, run.manager.lost()) == ([6], {}, {}.keys())


@pytest.mark.parametrize("signer", [UNSIGNED, KEY], ids=["unsigned", "signed"])
def test_a_genuine_segment_of_a_newer_version_stops_its_shard_and_is_named(signer: SegmentSigner) -> None:
    run = Run(0, signer=signer)
    newer = b"\x02" + bytes(40)
    run.log.records[0, 0] = [MAGIC + bytes(16) + newer if signer is UNSIGNED else signer.sign(PLACE, newer)]

    run.load()

    why = "the topic shop.delay.0[0], offset 0: it is a segment of version 2, this relay reads 1: run the newer version"
    assert run.manager.unreadable == {0: why}


def test_buckets_that_were_filled_without_the_key_are_filled_again_from_the_source() -> None:
    # Given progress of a relay without a key
    run = Run(signer=KEY)
    run.log.records[0, 0] = [run.segment(0, 5)]

    plan = run.backlog.plan(0, run.progress(), Bounds(2, 20), "me", offset_reset=False)

    empty = BucketsState(0, 0, (BucketState(1, 1, 1, 1), BucketState(0)), KEY.key_id)
    assert plan.progress == Progress(2, 9, NOTHING_DELIVERED, "me", empty)


def test_buckets_of_a_key_that_still_verifies_stay_as_they_are() -> None:
    rotated = SegmentSigner("shop", [b"new key", b"key"])
    run, progress = Run(signer=rotated), Run().progress()
    assert progress.buckets is not None
    signed = progress._replace(buckets=progress.buckets._replace(key=KEY.key_id))

    plan = run.backlog.plan(0, signed, Bounds(2, 20), "me", offset_reset=False)

    assert (plan.progress.offset, plan.progress.buckets) == (9, signed.buckets)


def test_what_another_source_knew_of_an_id_does_not_count() -> None:
    run = Run()
    ours, theirs = IdEntry(3, 9, 3), IdEntry(4, 9, 4)
    run.log.id_values[0] = {b"ours": encode_id(MARK, ours), b"theirs": encode_id(OTHER_MARK, theirs)}

    assert run.open(0).pending_ids == {b"ours": ours}


def test_a_shard_whose_bucket_lost_something_is_named_and_the_others_go_on() -> None:
    run = Run(0, 1)
    run.log.records[0, 0] = [run.segment(4, 5)]
    run.log.records[1, 0] = [run.segment(0, 6)]

    run.load()
    run.load()

    assert [*run.manager.lost()] == [0]
    assert run.in_memory(1) == [6]


def test_enough_of_a_shard_is_sent_ahead_of_the_commit_and_no_shard_of_which_little_waits() -> None:
    run = Run(0, 1, early_bytes=4 * size(schedule(60_000, 9)))
    for partition, records in ((0, 4), (1, 1)):
        far = [schedule(run.now_ms + 60_000, offset) for offset in range(9, 9 + records)]
        run.shards[partition].ingest(far, 9 + records, {})

    early = [record.partition for record in run.manager.put_early(run.shards.values())]
    late = [record.partition for record in run.manager.put_all(run.shards.values())]

    assert (early, late) == ([0], [1])


def test_a_segment_that_stays_away_for_long_is_lost() -> None:
    run = Run(0)

    run.load()
    before = [*run.manager.lost()]
    run.world.now_ms += MISSING_MS
    run.load()

    assert (before, [*run.manager.lost()]) == ([], [0])


def test_a_lost_bucket_is_filled_again_from_where_the_source_begins() -> None:
    run = Run(0)
    run.log.records[0, 0] = [run.segment(4, 5)]
    run.load()

    plan = run.backlog.plan(0, run.progress(), Bounds(2, 20), "me", offset_reset=False)

    assert plan.progress == Progress(
        2, 9, NOTHING_DELIVERED, "me", BucketsState(0, 0, (BucketState(1, 1, 1, 1), BucketState(0)))
    )
    assert not plan.backend_changed


def test_the_progress_of_another_backend_means_that_the_backlog_moves() -> None:
    run = Run()

    plan = run.backlog.plan(0, Progress(9, 9, NOTHING_DELIVERED), Bounds(2, 20), "me", offset_reset=False)

    assert (plan.progress.offset, plan.progress.position, plan.backend_changed) == (2, 9, True)


def test_what_may_be_due_is_awaited_until_it_was_read() -> None:
    run = Run(0)
    run.load()
    awaited = run.manager.awaits

    run.log.records[0, 0] = [run.segment(0, 5)]
    run.load()
    assert (awaited, run.manager.awaits) == (True, False)


def test_nothing_is_awaited_of_a_shard_whose_segment_cannot_be_read() -> None:
    run = Run(0)
    run.log.records[0, 0] = [MAGIC + bytes(16) + b"\x02" + bytes(40)]

    run.load()

    assert not run.manager.awaits
