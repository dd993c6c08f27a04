"""Mutants of bucket topics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.mutants.breaking import Mutant, Patch

from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.bucket import Bucket
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import DueKey, Schedule
from delaytopic_relay.core.progress import Progress


def forgets_what_is_only_in_memory() -> Sequence[Patch]:
    original = Bucket.state

    def state(self: Bucket, cursor: DueKey) -> BucketState:
        found = original(self, cursor)
        return found._replace(kept=found.read, offset=self.offset)

    return [(Bucket, "state", state)]


def _commits(change: Callable[[BucketShard, BucketsState, Progress], BucketsState]) -> Sequence[Patch]:
    original = BucketShard.progress

    def progress(self: BucketShard, owner: str) -> Progress:
        found = original(self, owner)
        assert found.buckets is not None
        return found._replace(buckets=change(self, found.buckets, found))

    return [(BucketShard, "progress", progress)]


def says_all_is_filled() -> Sequence[Patch]:
    return _commits(lambda shard, state, progress: state._replace(filled=progress.position))


def understates_its_reach() -> Sequence[Patch]:
    return _commits(lambda shard, state, progress: state._replace(reach_ms=shard._frontier_ms))


def ignores_what_is_unread() -> Sequence[Patch]:
    def bound(self: BucketShard) -> None:
        self._loaded_until_ms = self._frontier_ms

    return [(BucketShard, "_bound", bound)]


def moves_the_horizon_too_early() -> Sequence[Patch]:
    original = BucketShard.advance

    def advance(self: BucketShard, now_ms: int) -> None:
        far, moved, self._far, self._moved = self._far, self._moved, [], {}
        original(self, now_ms)
        self._far, self._moved = far, moved

    return [(BucketShard, "advance", advance)]


def floors_go_back() -> Sequence[Patch]:
    return [(Bucket, "floor_ms", lambda self, wished_ms: wished_ms)]


def splits_in_the_middle_of_a_tick() -> Sequence[Patch]:
    bucket_of, sort_far_into = BucketShard._bucket_of, BucketShard._sort_far_into

    def above(shard: BucketShard, number: int) -> int:
        return min(number + 1, len(shard._floors) - 1) if shard.ranges.is_split(number) else number

    def bucket_above(self: BucketShard, schedule: Schedule) -> int:
        return above(self, bucket_of(self, schedule))

    # What was read and what moves between buckets are sorted by a way each.
    def sort_far_above(self: BucketShard, groups: dict[int, list[Schedule]]) -> None:
        sorted_rightly: dict[int, list[Schedule]] = {}
        sort_far_into(self, sorted_rightly)
        for number, schedules in sorted_rightly.items():
            groups.setdefault(above(self, number), []).extend(schedules)

    return [(BucketShard, "_bucket_of", bucket_above), (BucketShard, "_sort_far_into", sort_far_above)]


def starts_amid_old_segments() -> Sequence[Patch]:
    original = BucketBacklog._empty

    def empty(self: BucketBacklog, partition: int) -> BucketsState:
        return original(self, partition)._replace(buckets=())

    return [(BucketBacklog, "_empty", empty)]


def believes_lost_buckets() -> Sequence[Patch]:
    original = BucketBacklog.plan

    def plan(self: BucketBacklog, partition: int, *arguments: Any, **keywords: Any) -> Any:
        self.manager._lost.pop(partition, None)
        return original(self, partition, *arguments, **keywords)

    return [(BucketBacklog, "plan", plan)]


def _of_buckets(name: str, sentence: str, patches: Callable[[], Sequence[Patch]]) -> Mutant:
    return Mutant(name, sentence, patches, "KafkaBuckets")


MUTANTS = (
    _of_buckets(
        "bucket-forgotten", "does not read again what only its memory had of a bucket", forgets_what_is_only_in_memory
    ),
    _of_buckets("bucket-filled", "says that buckets hold what was only read, not written", says_all_is_filled),
    _of_buckets("bucket-reach", "says that buckets hold what just missed the horizon", understates_its_reach),
    _of_buckets("bucket-unread", "lets the cursor pass segments that it has not read", ignores_what_is_unread),
    _of_buckets(
        "bucket-horizon", "moves the horizon while schedules are on the way to buckets", moves_the_horizon_too_early
    ),
    _of_buckets("bucket-floors", "lets the floors of a bucket go back while something waits in it", floors_go_back),
    _of_buckets(
        "bucket-split", "writes to the bucket above what is due before its floor", splits_in_the_middle_of_a_tick
    ),
    _of_buckets(
        "bucket-numbers", "begins with empty buckets amid the segments of former ones", starts_amid_old_segments
    ),
    _of_buckets("bucket-believed", "goes on with a bucket that has lost segments", believes_lost_buckets),
)
