from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.unit.operator.scaling.scenes import END, NOW_MS, QUIET, at_once, shard, signals, source, status

from delaytopic_api.relay import DueBin, RelayStatus, ShardState
from delaytopic_operator.scaling.need import Span
from delaytopic_operator.scaling.signals import (
    STALE_MS,
    FleetSignals,
    PartitionOffsets,
    Reading,
    SourceOffsets,
    gather,
    times_to_ask,
)


def test_nobody_who_answers_leaves_everything_unknown() -> None:
    assert gather([], None, NOW_MS) == FleetSignals(partitions=None)


def test_the_backlog_is_summed_over_partitions_as_of_the_oldest_count() -> None:
    relays = [
        status({0: shard(0, {10: 20}, overdue=3, lag=5)}, "relay-a", NOW_MS - 2_000),
        status({1: shard(1, {10: 40})}, "relay-b", NOW_MS),
    ]

    seen = gather(relays, source(partitions=2), NOW_MS)

    oldest_ms = NOW_MS - 2_000
    assert (seen.pending, seen.overdue, seen.ingest_lag) == (
        Reading(63, oldest_ms),
        Reading(3, oldest_ms),
        Reading(5, oldest_ms),
    )
    assert (seen.complete, seen.position, seen.source_end) == (
        True,
        Reading(2 * END - 5, oldest_ms),
        Reading(2 * END, NOW_MS),
    )


def test_a_partition_that_two_relays_report_counts_once_as_the_later_one_says() -> None:
    relays = [
        status({0: shard(0, {10: 500})}, "former", NOW_MS - 3_000),
        status({0: shard(0, {10: 20})}, "present", NOW_MS),
    ]

    assert gather(relays, source(partitions=1), NOW_MS).pending == Reading(20, NOW_MS)


def test_a_shard_that_recovers_or_failed_does_not_count_as_empty() -> None:
    shards = {0: shard(0), 1: shard(1, state=ShardState.RECOVERING), 2: shard(2, state=ShardState.FAILED)}

    seen = gather([status(shards)], source(partitions=3), NOW_MS)

    assert (seen.covered, seen.uncovered, seen.complete) == (frozenset({0}), (1, 2), False)


def test_what_a_former_owner_said_does_not_count_while_the_present_one_recovers() -> None:
    relays = [
        status({0: shard(0, {10: 500})}, "former", NOW_MS - 3_000),
        status({0: shard(0, state=ShardState.RECOVERING)}, "present", NOW_MS),
    ]

    assert gather(relays, source(partitions=1), NOW_MS).uncovered == (0,)


def test_a_shard_that_reads_again_is_covered_but_not_complete() -> None:
    seen = gather([status({0: shard(0, state=ShardState.REPLAYING)})], source(partitions=1), NOW_MS)

    assert (seen.uncovered, seen.settling, seen.complete) == ((), frozenset({0}), False)


def test_an_answer_that_is_too_old_says_nothing_even_if_it_was_fetched_just_now() -> None:
    hanging = status({0: shard(0)}, "hanging", NOW_MS - STALE_MS - 1)

    seen = gather([hanging], source(partitions=1), NOW_MS)

    assert seen == replace(gather([], source(partitions=1), NOW_MS), silent=("hanging",))


def test_offsets_that_are_too_old_say_nothing() -> None:
    assert gather([], source(NOW_MS - STALE_MS - 1), NOW_MS) == FleetSignals(partitions=None)


def test_a_partition_that_kafka_does_not_tell_leaves_the_end_unknown() -> None:
    offsets = SourceOffsets(NOW_MS, count=2, partitions={0: PartitionOffsets(0, END)})

    seen = gather([], offsets, NOW_MS)

    assert (seen.partitions, seen.source_end, seen.unread) == (2, None, None)


def test_what_retention_deleted_is_not_unread() -> None:
    assert PartitionOffsets(log_start=900, end=1_000, committed=100).unread == 100
    assert PartitionOffsets(log_start=900, end=1_000, committed=None).unread == 100
    assert PartitionOffsets(log_start=0, end=1_000, committed=1_100).unread == 0


def test_due_times_are_merged_on_the_finest_grid() -> None:
    relays = [
        status({0: shard(0, {10: 100, 20: 100})}, "fine"),
        status({1: shard(1, {20: 400})}, "coarse"),
    ]

    due = gather(relays, source(partitions=2), NOW_MS).due

    assert due is not None
    assert due.spans == (Span(NOW_MS, NOW_MS + 10_000, 300), Span(NOW_MS + 10_000, NOW_MS + 20_000, 300))


class TestFixedDelay:
    """Records wait in the source itself, for a minute."""

    DELAY_MS = 60_000

    def seen(self, *offset_at: tuple[int, int]) -> FleetSignals:
        offsets = PartitionOffsets(0, END, committed=100, offset_at=offset_at)
        shards = {0: shard(0, QUIET, lag=END - 100, state=ShardState.PAUSED)}
        return gather([status(shards)], SourceOffsets(NOW_MS, 1, {0: offsets}), NOW_MS, delay_ms=self.DELAY_MS)

    def test_what_waits_in_the_source_is_pending_and_not_behind(self) -> None:
        seen = self.seen((NOW_MS - 60_000, 100), (NOW_MS, 1_000))

        assert (seen.pending, seen.ingest_lag) == (Reading(900, NOW_MS), Reading(0, NOW_MS))

    def test_it_falls_due_as_its_timestamps_say(self) -> None:
        seen = self.seen((NOW_MS - 60_000, 100), (NOW_MS - 30_000, 200), (NOW_MS, 1_000))

        assert seen.due is not None
        assert sum(span.records for span in seen.due.spans if span.end_ms <= NOW_MS + 30_000) == 100
        assert seen.due.records == 900

    def test_what_should_have_left_already_is_behind(self) -> None:
        assert self.seen((NOW_MS - 60_000, 400), (NOW_MS, 1_000)).ingest_lag == Reading(300, NOW_MS)

    def test_without_offsets_by_time_it_is_spread_over_the_delay(self) -> None:
        seen = self.seen()

        assert seen.due is not None
        assert round(sum(span.records for span in seen.due.spans if span.end_ms <= NOW_MS + 10_000)) == 150

    def test_where_kafka_has_no_record_of_that_time_or_later_it_ends(self) -> None:
        answered = PartitionOffsets.answered(3, 1_000, {NOW_MS: None, NOW_MS - 60_000: 400})

        assert answered == PartitionOffsets(3, 1_000, 1_000, ((NOW_MS - 60_000, 400), (NOW_MS, 1_000)))

    def test_without_kafka_nobody_knows_how_far_behind_it_is(self) -> None:
        seen = gather([status({0: shard(0, lag=900)})], None, NOW_MS, delay_ms=self.DELAY_MS)

        assert seen.ingest_lag is None

    def test_times_to_ask_for_reach_from_what_is_due_now_to_the_end_of_the_look_ahead(self) -> None:
        times = times_to_ask(NOW_MS, delay_ms=3_600_000, look_ahead_ms=600_000)

        assert (times[0], times[-1], len(times)) == (NOW_MS - 3_600_000, NOW_MS - 3_000_000, 5)


def test_the_quick_way_to_signals_in_these_tests_is_as_good_as_the_long_one() -> None:
    through_documents = signals({10: 120, 60: 240}, overdue=12)

    assert replace(through_documents, relays=()) == at_once({10: 120, 60: 240}, overdue=12)


def whole(of_status: RelayStatus) -> RelayStatus:
    """The page for operators: the due times ahead are told of all partitions together."""
    totals = Counter[int]()
    for each in of_status.shards:
        totals.update({bin.up_to_ms: bin.records for bin in each.due_histogram})
    shards = [each.model_copy(update={"due_histogram": []}) for each in of_status.shards]
    bins = [DueBin(up_to_ms=up_to_ms, records=records) for up_to_ms, records in totals.items()]
    return of_status.model_copy(update={"due_histogram": bins, "shards": shards})


def test_a_relay_that_tells_of_all_its_partitions_together_is_understood_alike() -> None:
    relay = status({0: shard(0, {10: 20, 60: 8}), 1: shard(1, {10: 40})})

    found = [gather([each], source(partitions=2), NOW_MS) for each in (relay, whole(relay))]

    assert found[0] == found[1]


def test_of_what_a_relay_tells_together_as_much_counts_as_no_other_relay_tells_later() -> None:
    former = whole(status({0: shard(0, {10: 300}), 1: shard(1, {10: 100})}, "former", NOW_MS - 3_000))
    present = whole(status({0: shard(0, {10: 20})}, "present", NOW_MS))

    seen = gather([former, present], source(partitions=2), NOW_MS)

    assert seen.due is not None
    # Of the former relay's 400 a quarter, of which 10 of 13 s are still ahead, and 20.
    assert seen.due.records == 97
