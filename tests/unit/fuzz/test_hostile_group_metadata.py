"""Whoever may commit for the group writes any metadata: it is refused by a named fault, or worked with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from tests.support.fuzzing import fuzz, nightly_for, peak_memory_bytes
from tests.support.relay.backlog.bucket_log import MemoryBucketLog
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.quiet_events import QuietEvents
from tests.support.relay.schedules import schedule
from tests.support.relay.world import World, WorldClock

from delaytopic_api.values import Dialect
from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.backlog import BucketBacklog
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.backlog.kafka.topics import BucketNames
from delaytopic_relay.backlog.protocol import Backlog, EmptyReader
from delaytopic_relay.backlog.redis.backlog import RedisBacklog
from delaytopic_relay.core.admission_limits import AdmissionLimits
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.progress import Identity, Progress, decode_progress, encode_metadata
from delaytopic_relay.core.recovery import Bounds
from delaytopic_relay.core.rules import Generation, Rules
from delaytopic_relay.errors import ProgressError, RelayError
from delaytopic_relay.telemetry.status import backlog_stats

LARGEST = 2**63 - 1
HORIZON_MS = 1_000
LOOK_AHEAD_MS = 600_000
DAY_MS = 86_400_000
RULES = BucketRules(horizon_ms=HORIZON_MS, buckets=2, source_id=7, full_records=100)

offsets = st.integers(0, 2**40)
numbers = st.one_of(offsets, st.integers(), st.sampled_from([-1, LARGEST, LARGEST + 1, 2**64, 10**400]))
bounds = st.builds(lambda low, size: Bounds(low, low + size), offsets, offsets)
buckets = st.builds(
    BucketsState,
    numbers,
    numbers,
    st.lists(st.builds(BucketState, *[numbers] * 9), max_size=4).map(tuple),
    st.sampled_from(["", "~0123abcd", "a:b"]),
)
keys = st.builds(DueKey, numbers, numbers)
rules = st.builds(Rules, st.sampled_from(Dialect), numbers, st.sampled_from(["", "0123abcd"]), st.none() | numbers)
genuine = st.builds(
    Progress,
    offsets,
    numbers,
    keys,
    st.sampled_from(["", "group/host-1-0123abcd", "other/;:,"]),
    st.none() | buckets,
    st.lists(st.builds(AdmissionLimits, numbers, numbers, st.booleans(), numbers), max_size=3).map(tuple),
    st.lists(st.builds(Generation, numbers, numbers, st.builds(DueKey, numbers, numbers), rules), max_size=3).map(
        tuple
    ),
    numbers,
    st.sampled_from([Identity(), Identity("Mk3OEYBS", "4L6g3nSh", 7), Identity("", "4L6g3nSh", -1, 3)]),
).map(encode_metadata)
texts = st.text(st.sampled_from("0123456789;:,-~./ ab_٣\x00é"), max_size=200) | st.text(max_size=200)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draw a genuine text with a piece of it replaced."""
    text = draw(genuine)
    first = draw(st.integers(0, len(text)))
    last = draw(st.integers(first, len(text)))
    return text[:first] + draw(st.sampled_from(["", ";", ":", ",", "-", "9" * 4_000]) | texts) + text[last:]


committed = st.tuples(offsets, genuine | mutated() | texts, bounds, st.booleans())


def backlog_of(kind: str, clock: WorldClock) -> Backlog:
    """Make a backlog of this kind that holds nothing."""
    if kind == "fixed delay":
        return FixedBacklog(HORIZON_MS)
    if kind == "redis":
        return RedisBacklog(MemoryBacklogStore(), "relay", HORIZON_MS, clock, QuietEvents(), EmptyReader)
    return BucketBacklog(MemoryBucketLog(), BucketNames("shop"), RULES, clock, QuietEvents(), lambda _: EmptyReader())


@nightly_for(100)
@pytest.mark.parametrize("kind", ["redis", "buckets", "fixed delay"])
def test_metadata_of_anybody_is_refused_by_name_or_worked_with(
    kind: str, seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"worked with": 0, "refused": 0, "bytes": 0}

    def work_with(found: tuple[int, str, Bounds, bool]) -> None:
        # Any error but these is a defect: it would end the relay, and each successor that reads the same.
        offset, metadata, source, offset_reset = found
        counts["bytes"] += len(metadata)
        clock = WorldClock(World())
        backlog = backlog_of(kind, clock)
        try:
            progress = decode_progress(offset, metadata)
        except ProgressError:
            counts["refused"] += 1
            return
        plan = backlog.plan(0, progress, source, "new", offset_reset=offset_reset)
        start, taken = plan.progress.offset, plan.progress.position
        assert source.low <= start <= taken <= source.end
        assert decode_progress(start, encode_metadata(plan.progress)) == plan.progress
        try:
            backlog.prepare([0])
            shard, manager = backlog.open(0, plan), backlog.manager
            shard.renew_admission_limits(clock.now_ms(), ids_share=0)
            shard.ingest([schedule(clock.now_ms() + 60_000, start), schedule(clock.now_ms(), start + 1)], start + 2, {})
            for _ in range(3):
                manager.list_next([shard])
                manager.load_next([shard], 1 << 20)
                manager.put_all([shard])
                shard.take_due(clock.now_ms(), 100)
                backlog_stats(shard, clock.now_ms(), LOOK_AHEAD_MS)
                shard.bucket_status()
                encode_metadata(shard.progress("new"))
            counts["worked with"] += 1
        except RelayError:
            counts["refused"] += 1

    tried = fuzz(committed, work_with, seconds)

    record_property("hostile", {"texts": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0
