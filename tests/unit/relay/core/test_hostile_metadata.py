"""Metadata of the group's offsets, which whoever may commit for the group can write: refused, or worked with."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.schedules import schedule

from delaytopic_relay.backlog.fixed import FixedBacklog
from delaytopic_relay.backlog.kafka.partition import BucketShard
from delaytopic_relay.backlog.kafka.ranges import BucketRules
from delaytopic_relay.core.bucket_state import BucketsState, BucketState
from delaytopic_relay.core.commands import DueKey
from delaytopic_relay.core.progress import Progress, decode_progress, encode_metadata
from delaytopic_relay.core.recovery import Bounds, plan_recovery
from delaytopic_relay.core.terms import Terms
from delaytopic_relay.errors import RelayError

NOW_MS = 1_795_000_000_000
NUMBERS = st.integers(0, 1 << 40)
BUCKETS = st.lists(st.builds(BucketState, *[NUMBERS] * 9), max_size=4).map(tuple)
PROGRESS = st.builds(
    Progress,
    NUMBERS,
    NUMBERS,
    st.builds(DueKey, NUMBERS, NUMBERS),
    st.text(max_size=20),
    st.none() | st.builds(BucketsState, NUMBERS, NUMBERS, BUCKETS, st.sampled_from(["", "k1"])),
    st.lists(st.builds(Terms, NUMBERS, NUMBERS, st.booleans(), NUMBERS), max_size=3).map(tuple),
)
PIECES = st.sampled_from([*"123-;:,0٣\x00", "-1", "9" * 19, "9" * 5_000, "1_0", " 7"])


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draw a text that a relay wrote, with some places of it changed."""
    text = encode_metadata(draw(PROGRESS))
    for _ in range(draw(st.integers(1, 4))):
        place, width = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        text = text[:place] + draw(PIECES) + text[place + width :]
    return text


def work_with(progress: Progress) -> None:
    """Take over by it, with and without buckets, and go through a step of a shard."""
    bounds = Bounds(3, 1_000)
    FixedBacklog(10_000).plan(0, progress, bounds, "me", offset_reset=False)
    plan = plan_recovery(progress, None, bounds, "me").progress
    rules = BucketRules(horizon_ms=10_000, buckets=4, source_id=1, full_records=100)
    state = progress.buckets or BucketsState(0, 0, ())
    shard = BucketShard(0, plan._replace(terms=progress.terms), plan.offset, state, {}, rules)
    shard.advance(NOW_MS)
    shard.renew_terms(NOW_MS, 86_400_000, ids_full=False)
    shard.ingest([schedule(NOW_MS + 60_000, plan.offset), schedule(NOW_MS, plan.offset + 1)], plan.offset + 2, {})
    shard.to_visit(NOW_MS, room=True)
    shard.put_done(shard.put(), NOW_MS)
    shard.take_due(NOW_MS, 100)
    encode_metadata(shard.progress("me"))


@QUICK
@given(st.text(max_size=200) | mutated())
def test_metadata_of_anybody_is_refused_by_name_or_worked_with(text: str) -> None:
    # Any other error is a defect: it would end the relay, and each successor that reads the same.
    with suppress(RelayError):
        work_with(decode_progress(5, text))


@QUICK
@given(PROGRESS)
def test_metadata_of_a_relay_is_read_back(progress: Progress) -> None:
    assert decode_progress(progress.offset, encode_metadata(progress)).cursor == progress.cursor
