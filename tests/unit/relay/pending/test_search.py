"""Tests of what a listing holds, over shards that run with a memory backlog: exactly what delivery would deliver."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.listings import MemoryReader
from tests.support.relay.backlog.shard_run import ShardRun
from tests.support.relay.schedules import cancel, schedule

from delaytopic_relay.backlog.protocol import SliceGone
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.commands import Command, Schedule
from delaytopic_relay.errors import BacklogUnavailable, RelayError, SegmentError
from delaytopic_relay.pending import search as listing
from delaytopic_relay.pending.query import PendingQuery, Selection
from delaytopic_relay.pending.search import Listed, PendingResult, TopN, list_pending
from delaytopic_relay.pending.snapshot import copy_of, may_be_copied

NOW_MS = 1_000_000_000
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
ALL = PendingQuery(limit=1_000)
AHEAD_MS = st.one_of(st.integers(0, 30 * SECOND_MS), st.integers(0, 3 * HOUR_MS), st.integers(0, 3 * DAY_MS))


def run_with(*commands: Command) -> ShardRun:
    run = ShardRun()
    run.source += commands
    run.tick(NOW_MS)
    return run


def listed(run: ShardRun, query: PendingQuery = ALL, reader: MemoryReader | None = None) -> PendingResult:
    assert may_be_copied(run.shard)
    return list_pending([copy_of(run.shard, query)], lambda: reader or MemoryReader(run.store), query)


def offsets(found: PendingResult) -> list[int]:
    return [record.offset for record in found.records]


def deliveries(run: ShardRun, now_ms: int) -> list[int]:
    """Return what is delivered from now on, in order."""
    before = len(run.outcome.delivered)
    while run.shard.pending or not run.shard.counted:
        due_ms = run.shard.wake_ms()
        now_ms = max(now_ms + MINUTE_MS, due_ms or 0)
        run.tick(now_ms)
    return [delivered.key.offset for delivered in run.outcome.delivered[before:]]


@pytest.mark.parametrize("ahead_ms", [5 * SECOND_MS, 20 * SECOND_MS, 2 * HOUR_MS, 3 * DAY_MS])
def test_what_waits_is_listed_wherever_it_waits(ahead_ms: int) -> None:
    run = run_with(schedule(NOW_MS + ahead_ms + 2, 0), schedule(NOW_MS + ahead_ms, 1), schedule(NOW_MS + ahead_ms, 2))

    assert [record[:3] for record in listed(run).records] == [
        (NOW_MS + ahead_ms, 0, 1),
        (NOW_MS + ahead_ms, 0, 2),
        (NOW_MS + ahead_ms + 2, 0, 0),
    ]


@QUICK
@given(
    st.lists(st.tuples(AHEAD_MS, st.sampled_from([None, b"a", b"b", b"c"]), st.booleans()), max_size=30),
    st.lists(st.integers(0, 20 * MINUTE_MS), max_size=6),
    st.integers(1, 12),
)
def test_the_list_is_what_delivery_would_deliver_at_any_time(
    wishes: list[tuple[int, bytes | None, bool]], pauses: list[int], limit: int
) -> None:
    commands: list[Command] = [
        cancel(offset, name) if name is not None and cancels else schedule(NOW_MS + ahead_ms, offset, name)
        for offset, (ahead_ms, name, cancels) in enumerate(wishes)
    ]
    run = run_with(*commands)
    now_ms = NOW_MS
    for pause_ms in pauses:
        now_ms += pause_ms
        run.tick(now_ms)

    everything, first = listed(run), listed(run, PendingQuery(limit=limit))
    selections = [
        *(Selection(id=name) for name in (b"a", b"b", b"other")),
        *(Selection(after=record[:3]) for record in everything.records),
        *(Selection(after=(record.due_ms + more_ms, -1, -1)) for record in first.records for more_ms in (0, 1)),
    ]
    selected = {selection: listed(run, ALL._replace(selection=selection)) for selection in selections}

    assert (everything.cut_ms, everything.why) == (None, None)
    assert {selection: found.records for selection, found in selected.items()} == {
        selection: [
            record
            for record in everything.records
            if record[:3] > selection.after and selection.id in (None, record.id)
        ]
        for selection in selections
    }
    assert offsets(everything) == deliveries(run, now_ms)
    assert first.records == everything.records[: limit + 1]


@pytest.mark.parametrize("selection", [Selection(key_prefix=b"k1"), Selection(id_prefix=b"id1"), Selection(key=b"k11")])
def test_keys_and_ids_are_selected_by_their_beginning(selection: Selection) -> None:
    run = run_with(*(Schedule(NOW_MS + n * MINUTE_MS, n, b"k%d" % n, b"v", None, id=b"id%d" % n) for n in range(20)))

    found = listed(run, ALL._replace(selection=selection))

    assert offsets(found) == ([11] if selection.key else [1, *range(10, 20)])


def test_a_search_goes_on_where_a_list_had_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_READ", 7)
    run = run_with(*(Schedule(NOW_MS + n * MINUTE_MS, n, b"%d" % (n % 5), b"v", None) for n in range(1, 60)))
    found: list[int] = []
    cuts_ms = [0]

    while True:
        part = listed(run, ALL._replace(selection=Selection((cuts_ms[-1], -1, -1), key_prefix=b"3")))
        found += offsets(part)
        if part.cut_ms is None:
            break
        cuts_ms.append(part.cut_ms)

    assert found == list(range(3, 60, 5))
    assert len(cuts_ms) > 5
    assert cuts_ms == sorted(set(cuts_ms))


def test_an_id_is_found_without_reading_what_waits_before_it() -> None:
    run = run_with(*(schedule(NOW_MS + n * MINUTE_MS, n, b"id%d" % n) for n in range(1, 60)))
    reader = MemoryReader(run.store)

    found = listed(run, ALL._replace(selection=Selection(id=b"id50")), reader)

    assert (offsets(found), len(reader.read_slices)) == ([50], 1)


def test_an_id_that_now_comes_before_its_former_time_is_found() -> None:
    run = run_with(schedule(NOW_MS + 2 * HOUR_MS, 0, b"a"), schedule(NOW_MS + HOUR_MS, 1, b"a"))

    found = listed(run, ALL._replace(selection=Selection(id=b"a")))

    assert offsets(found) == [1]


def test_only_what_is_due_before_the_time_is_listed() -> None:
    ahead_ms = [1, 2, HOUR_MS, HOUR_MS + 1]
    run = run_with(*(schedule(NOW_MS + ahead, n) for n, ahead in enumerate(ahead_ms)))

    assert [
        offsets(listed(run, PendingQuery(NOW_MS + before_ms)))
        for before_ms in (1, 2, 3, HOUR_MS, HOUR_MS + 1, HOUR_MS + 2)
    ] == [[], [0], [0, 1], [0, 1], [0, 1, 2], [0, 1, 2, 3]]


def test_the_backlog_is_read_only_as_far_as_needed() -> None:
    slices = [Slice(NOW_MS + minute * MINUTE_MS, SECOND_MS) for minute in range(1, 20)]
    run = run_with(*(schedule(slice_.start_ms, n) for n, slice_ in enumerate(slices)))
    reader = MemoryReader(run.store)

    assert offsets(listed(run, PendingQuery(limit=3), reader)) == [0, 1, 2, 3]
    assert (reader.read_slices, reader.closed) == (slices[:4], True)


def test_the_backlog_is_not_opened_while_memory_has_enough() -> None:
    run = run_with(*(schedule(NOW_MS + n, n) for n in range(3)), schedule(NOW_MS + HOUR_MS, 3))

    def open_reader() -> MemoryReader:
        raise AssertionError("nobody needs the backlog")

    query = PendingQuery(limit=2)
    assert len(list_pending([copy_of(run.shard, query)], open_reader, query).records) == 3
    soon = PendingQuery(NOW_MS + MINUTE_MS)
    assert len(list_pending([copy_of(run.shard, soon)], open_reader, soon).records) == 3


def test_several_shards_are_listed_in_one_order() -> None:
    runs = [run_with(*(schedule(NOW_MS + ahead, n) for n, ahead in enumerate(part))) for part in ([5, 9], [5, 7])]
    copies = [copy_of(run.shard, ALL)._replace(partition=n) for n, run in enumerate(runs)]

    found = list_pending(copies, lambda: MemoryReader(runs[0].store), ALL)

    assert [record[:3] for record in found.records] == [
        (NOW_MS + 5, 0, 0),
        (NOW_MS + 5, 1, 0),
        (NOW_MS + 7, 1, 1),
        (NOW_MS + 9, 0, 1),
    ]


def test_what_a_predecessor_put_and_never_committed_is_left_out() -> None:
    run = run_with(schedule(NOW_MS + HOUR_MS, 0))
    run.source.append(schedule(NOW_MS + HOUR_MS, 1))
    run.ingest(NOW_MS)
    run.put(NOW_MS)
    run.recover()

    assert offsets(listed(run)) == [0]


def test_a_shard_that_reads_again_says_so() -> None:
    run = run_with(schedule(NOW_MS + HOUR_MS, 0))
    run.source.append(schedule(NOW_MS + 5_000, 1))
    run.tick(NOW_MS)
    run.recover()

    copy = copy_of(run.shard, ALL)

    assert copy.replaying
    assert offsets(listed(run)) == [0]


def test_what_moves_within_the_backlog_while_it_is_read_is_found() -> None:
    run = run_with(*(schedule(NOW_MS + 2 * DAY_MS + n * MINUTE_MS, n) for n in range(60)))
    (wide, *_) = sorted(run.store.slices(0))
    moved: list[Slice] = []

    def cascade(slice_: Slice) -> None:
        if not moved:
            moved.append(slice_)
            run.tick(wide.start_ms - HOUR_MS)
            run.tick(wide.start_ms - HOUR_MS)
            assert wide not in run.store.slices(0)

    found = listed(run, reader=MemoryReader(run.store, cascade))

    assert (moved, offsets(found), found.why) == ([wide], list(range(60)), None)


def test_a_backlog_that_moves_all_the_time_ends_the_list_with_a_reason() -> None:
    run = run_with(schedule(NOW_MS + 5, 0), schedule(NOW_MS + HOUR_MS, 1))

    def always_gone(slice_: Slice) -> None:
        raise SliceGone

    found = listed(run, reader=MemoryReader(run.store, always_gone))

    assert (offsets(found), found.cut_ms) == ([0], (NOW_MS + HOUR_MS) // MINUTE_MS * MINUTE_MS)
    assert found.why == "what is in the backlog moved while it was read; ask again"


@pytest.mark.parametrize("owner", ["", "somebody else"])
def test_a_backlog_that_is_somebody_elses_by_now_ends_the_list_with_a_reason(owner: str) -> None:
    run = run_with(schedule(NOW_MS + 5, 0), schedule(NOW_MS + HOUR_MS, 1))

    def steal(slice_: Slice) -> None:
        version = run.shard.store_version
        run.store.put(0, version, StoreVersion(owner or version.owner, version.counter - (not owner), 0), [], {})

    found = listed(run, reader=MemoryReader(run.store, steal))

    assert offsets(found) == [0]
    assert found.why == "partition 0 is being recovered, or went to another relay; ask again"


@pytest.mark.parametrize("error", [BacklogUnavailable("no answer"), SegmentError("damaged")])
def test_a_backlog_that_cannot_be_read_ends_the_list_with_a_reason(error: RelayError) -> None:
    run = run_with(schedule(NOW_MS + 5, 0), schedule(NOW_MS + HOUR_MS, 1))

    def fail(slice_: Slice) -> None:
        raise error

    found = listed(run, reader=MemoryReader(run.store, fail))

    assert (offsets(found), found.why) == ([0], f"the backlog cannot be read: {error}")


def test_a_slice_with_too_many_records_ends_the_list_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_READ", 5)
    run = run_with(schedule(NOW_MS + MINUTE_MS, 0), *(schedule(NOW_MS + HOUR_MS + n, n) for n in range(1, 7)))

    found = listed(run)

    assert (offsets(found), found.cut_ms) == ([0], (NOW_MS + HOUR_MS) // MINUTE_MS * MINUTE_MS)
    assert found.why == (
        "to put further records in order, more would have to be read than a listing may: 6 wait in the backlog of "
        "partition 0 within 60 s; they can be listed closer to their time"
    )


def test_of_one_partition_more_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_READ", 5)
    run = run_with(schedule(NOW_MS + MINUTE_MS, 0), *(schedule(NOW_MS + HOUR_MS + n, n) for n in range(1, 7)))

    assert offsets(listed(run, ALL._replace(partition=0))) == [*range(7)]


def test_records_of_too_many_bytes_end_the_list_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_READ_BYTES", 2_000)
    far: Sequence[Command] = [schedule(NOW_MS + n * MINUTE_MS, n, value=bytes(500)) for n in range(1, 9)]
    run = run_with(schedule(NOW_MS + 5, 0), *far)

    found = listed(run)

    assert found.why is not None
    assert 0 < len(found.records) < 9
    assert all(record.due_ms < (found.cut_ms or 0) for record in found.records)


def test_listing_changes_nothing() -> None:
    run = run_with(*(schedule(NOW_MS + n * 7_000, n, b"id%d" % (n % 3)) for n in range(30)))
    twin = run_with(*(schedule(NOW_MS + n * 7_000, n, b"id%d" % (n % 3)) for n in range(30)))

    for step in range(40):
        listed(run)
        for each in (run, twin):
            each.tick(NOW_MS + step * 10_000)

    assert run.outcome == twin.outcome
    assert run.committed == twin.committed


# -- the first so many


PLACES = st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 9))


@QUICK
@given(st.lists(st.lists(PLACES, max_size=8), max_size=12), st.integers(1, 7))
def test_it_keeps_the_first_places_once_whatever_the_order_of_arrival(
    portions: list[list[tuple[int, int, int]]], size: int
) -> None:
    shortlist = TopN(size)

    for portion in portions:
        for due_ms, partition, offset in portion:
            shortlist.add(partition, [schedule(due_ms, offset)])

    found = sorted({place for portion in portions for place in portion})[:size]
    assert [record[:3] for record in shortlist.records()] == found
    assert shortlist.missing == max(0, size - len(found))
    assert (shortlist.last_ms is None) == (len(found) < size)
    assert shortlist.last_ms is None or shortlist.last_ms >= found[-1][0]


def test_a_record_is_told_without_value_and_headers() -> None:
    shortlist = TopN(3)

    shortlist.add(
        2, [Schedule(7, 5, b"k", b"secret", [("h", b"secret")], id=b"i", target="t"), schedule(8, 6, value=None)]
    )

    assert shortlist.records() == [Listed(7, 2, 5, b"i", "t", b"k", 6), Listed(8, 2, 6, None, None, b"k", None)]


def test_contents_are_told_when_they_are_asked_for() -> None:
    whole = Schedule(7, 5, b"k", b"secret", [("h", b"secret")], expires_ms=9)
    shortlist = TopN(3, contents=True)

    shortlist.add(2, [whole])

    assert shortlist.records() == [Listed(7, 2, 5, None, None, b"k", 6, 9, whole)]
