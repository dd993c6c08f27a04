"""Whoever may commit for the group writes any metadata: it is read, or refused by a named fault, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.support.bucket_log import MemoryBucketLog
from tests.support.fuzzing import fuzz, peak_memory_bytes, seconds
from tests.support.quiet_journal import QuietJournal
from tests.support.world import World, WorldClock

from delaytopic_relay.backlog.kafka.manager import BucketNames, BucketShelving
from delaytopic_relay.backlog.kafka.rules import BucketRules
from delaytopic_relay.backlog.kafka.state import BucketsState, BucketState
from delaytopic_relay.backlog.store import Position
from delaytopic_relay.core.commands import Key
from delaytopic_relay.core.progress import Progress, decode_progress, encode_metadata
from delaytopic_relay.core.terms import Terms
from delaytopic_relay.engine.ports import Bounds
from delaytopic_relay.engine.recovery import plan_fixed, plan_recovery
from delaytopic_relay.errors import ProgressError, RelayError
from delaytopic_relay.telemetry.backlog_stats import census_of

LARGEST = 2**63 - 1
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
genuine = st.builds(
    Progress,
    offsets,
    numbers,
    st.builds(Key, numbers, numbers),
    st.sampled_from(["", "group/host-1-0123abcd", "other/;:,"]),
    st.none() | buckets,
    st.lists(st.builds(Terms, numbers, numbers, st.booleans()), max_size=3).map(tuple),
).map(encode_metadata)
texts = st.text(st.sampled_from("0123456789;:,-~./ ab_٣\x00é"), max_size=200) | st.text(max_size=200)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draw a genuine text with a piece of it replaced."""
    text = draw(genuine)
    first = draw(st.integers(0, len(text)))
    last = draw(st.integers(first, len(text)))
    return text[:first] + draw(st.sampled_from(["", ";", ":", ",", "-", "9" * 4_000]) | texts) + text[last:]


positions = st.none() | st.builds(Position, st.just("token"), numbers, numbers)
committed = st.tuples(offsets, genuine | mutated() | texts, bounds, positions, st.booleans())


@seconds(3, 300)
def test_metadata_of_a_group_is_read_or_refused(seconds: float, record_property: Callable[[str, object], None]) -> None:
    counts = {"read": 0, "refused": 0, "bytes": 0}

    def recover(found: tuple[int, str, Bounds, Position | None, bool]) -> None:
        offset, metadata, source, position, by_hand = found
        counts["bytes"] += len(metadata)
        try:
            progress = decode_progress(offset, metadata)
        except ProgressError:
            counts["refused"] += 1
            return
        counts["read"] += 1
        plan = plan_recovery(progress, position, source, "new", "token", by_hand=by_hand)
        for planned in (plan.progress, plan_fixed(progress, source, "new")):
            assert source.low <= planned.offset <= planned.position <= source.end
            assert decode_progress(planned.offset, encode_metadata(planned)) == planned

    tried = fuzz(committed, recover, seconds=seconds)

    record_property("hostile", {"texts": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert (counts["read"] > 0, counts["refused"] > 0) == (True, True)


@seconds(3, 300)
def test_metadata_of_a_group_opens_buckets_or_is_refused(
    seconds: float, record_property: Callable[[str, object], None]
) -> None:
    counts = {"opened": 0, "refused": 0}

    def open_buckets(found: tuple[int, str, Bounds, Position | None, bool]) -> None:
        offset, metadata, source, _, by_hand = found
        clock, rules = WorldClock(World()), BucketRules(horizon_ms=1_000, buckets=2, mark=7)
        shelving = BucketShelving(MemoryBucketLog(), BucketNames("shop"), rules, clock, QuietJournal())
        try:
            plan = shelving.plan(0, decode_progress(offset, metadata), source, "new", by_hand=by_hand)
            shelving.prepare([0])
            shard = shelving.open(0, plan.progress, plan.progress.offset)
            for _ in range(3):
                shelving.load_next([shard], 1 << 20)
                shelving.put_all([shard])
                census_of(shard, clock.now_ms(), 600_000)
                shard.waiting_buckets()
                encode_metadata(shard.progress("new"))
            counts["opened"] += 1
        except RelayError:
            counts["refused"] += 1

    tried = fuzz(committed, open_buckets, seconds=seconds)

    record_property("hostile", {"texts": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert (counts["opened"] > 0, counts["refused"] > 0) == (True, True)
