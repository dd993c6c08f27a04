from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.support.relay.statuses import AS_OF_MS, relay_status, shard

from delaytopic_api.records import FIRST_MEANT_MS, DeadLetterReason
from delaytopic_api.relay import OpenTransaction, SecondClockStatus, ShardState
from delaytopic_relay.errors import StateInDoubt
from delaytopic_relay.telemetry.metrics import RECOVERY_CAUSES, MillisecondHistogram, RelayMetrics

LABELS = {"delaytopic_namespace": "shop", "delaytopic_name": "reminders"}


def relay_metrics() -> RelayMetrics:
    return RelayMetrics("shop", "reminders")


def samples(metrics: RelayMetrics, name: str, label: str | None = None) -> dict[str | None, float]:
    """Return what a scrape finds under a name, by the value of a label.

    All of it must be labelled with the DelayTopic.
    """
    families = text_string_to_metric_families(metrics.render().decode())
    found = [sample for family in families for sample in family.samples if sample.name == name]
    assert all(sample.labels.items() >= LABELS.items() for sample in found)
    return {sample.labels[label] if label else None: sample.value for sample in found}


def test_delivered_records_are_counted_with_their_lateness_in_seconds() -> None:
    metrics = relay_metrics()

    metrics.observe_delivered([AS_OF_MS - 1_500, AS_OF_MS - 3, AS_OF_MS], AS_OF_MS)

    assert samples(metrics, "delaytopic_delivered_records_total") == {None: 3}
    assert samples(metrics, "delaytopic_lateness_seconds_count") == {None: 3}
    assert samples(metrics, "delaytopic_lateness_seconds_sum") == {None: 1.503}
    buckets = samples(metrics, "delaytopic_lateness_seconds_bucket", "le")
    assert [buckets[edge] for edge in ("0.001", "0.002", "0.005", "1.0", "2.0", "3600.0", "+Inf")] == [
        1,
        1,
        2,
        2,
        3,
        3,
        3,
    ]


def test_every_reason_of_a_dead_letter_is_there_before_the_first_one() -> None:
    metrics = relay_metrics()

    metrics.add_dead_letter(DeadLetterReason.EXPIRED)
    metrics.add_dead_letter("expired")

    expected = dict.fromkeys(map(str, DeadLetterReason), 0) | {"expired": 2}
    assert samples(metrics, "delaytopic_dead_letter_records_total", "reason") == expected


def test_a_reason_of_a_newer_package_is_counted_too() -> None:
    metrics = relay_metrics()

    metrics.add_dead_letter("novel")

    assert samples(metrics, "delaytopic_dead_letter_records_total", "reason")["novel"] == 1


def test_every_cause_of_a_recovery_is_there_before_the_first_one() -> None:
    metrics = relay_metrics()

    metrics.add_recovery("backlog-moved")

    expected = dict.fromkeys(RECOVERY_CAUSES, 0) | {"backlog-moved": 1}
    assert samples(metrics, "delaytopic_recoveries_total", "cause") == expected


def test_the_causes_are_those_of_all_errors_that_lose_a_shard() -> None:
    causes = {"assigned", StateInDoubt.cause, *(error.cause for error in StateInDoubt.__subclasses__())}

    assert set(RECOVERY_CAUSES) == causes


def test_commands_with_ids_are_counted_by_what_became_of_them() -> None:
    metrics = relay_metrics()

    metrics.add_commands(1, 2, 3)
    metrics.add_commands(1, 0, 0)

    assert samples(metrics, "delaytopic_superseded_records_total") == {None: 2}
    assert samples(metrics, "delaytopic_cancelled_records_total") == {None: 2}
    assert samples(metrics, "delaytopic_cancels_too_late_total") == {None: 3}


def test_commits_and_puts_are_measured_in_seconds() -> None:
    metrics = relay_metrics()

    metrics.observe_commit(7)
    metrics.observe_commit(250)
    metrics.observe_put(2)
    metrics.add_backlog_error()
    metrics.add_foreign_entry()
    metrics.add_misspelt()

    assert samples(metrics, "delaytopic_commit_seconds_sum") == {None: 0.257}
    assert samples(metrics, "delaytopic_commit_seconds_count") == {None: 2}
    assert samples(metrics, "delaytopic_backlog_write_seconds_sum") == {None: 0.002}
    assert samples(metrics, "delaytopic_backlog_errors_total") == {None: 1}
    assert samples(metrics, "delaytopic_foreign_entries_total") == {None: 1}
    assert samples(metrics, "delaytopic_misspelt_header_records_total") == {None: 1}


def test_the_backlog_is_that_of_the_latest_status() -> None:
    metrics = relay_metrics()
    metrics.set_backlog(relay_status(pending=1))

    metrics.set_backlog(
        relay_status(oldest_overdue_ms=AS_OF_MS - 2_500, next_due_ms=AS_OF_MS - 2_500, busy_rate=80_000.0)
    )

    assert samples(metrics, "delaytopic_pending_records") == {None: 12}
    assert samples(metrics, "delaytopic_overdue_records") == {None: 2}
    assert samples(metrics, "delaytopic_oldest_overdue_seconds") == {None: 2.5}
    assert samples(metrics, "delaytopic_next_due_timestamp_seconds") == {None: 1_795_269_597.5}
    assert samples(metrics, "delaytopic_ingest_lag_records") == {None: 5}
    assert samples(metrics, "delaytopic_memory_bytes") == {None: 4_096}
    assert samples(metrics, "delaytopic_speedups") == {None: 1}
    assert samples(metrics, "delaytopic_busy_records_per_second") == {None: 80_000}


def test_what_is_not_known_is_absent_and_not_zero() -> None:
    metrics = relay_metrics()

    metrics.set_backlog(relay_status(next_due_ms=None, busy_rate=None, oldest_overdue_ms=None))

    assert samples(metrics, "delaytopic_next_due_timestamp_seconds") == {}
    assert samples(metrics, "delaytopic_busy_records_per_second") == {}
    assert samples(metrics, "delaytopic_oldest_overdue_seconds") == {None: 0}


def test_there_is_no_backlog_before_the_first_count() -> None:
    metrics = relay_metrics()

    assert samples(metrics, "delaytopic_pending_records") == {}


def test_shards_are_counted_by_state() -> None:
    metrics = relay_metrics()
    shards = [shard(0, ShardState.DELIVERING), shard(1, ShardState.DELIVERING), shard(2, ShardState.REPLAYING)]

    metrics.set_backlog(relay_status(shards=shards))

    expected = dict.fromkeys(map(str, ShardState), 0) | {"Delivering": 2, "Replaying": 1}
    assert samples(metrics, "delaytopic_shards", "state") == expected


def test_how_far_the_clock_is_ahead_is_told_and_whether_that_holds_delivery() -> None:
    metrics = relay_metrics()
    names = ("clock_ahead_seconds", "clock_holds_delivery")
    unknown = SecondClockStatus(name="Redis", agrees=False)

    told = []
    for clock in (unknown.model_copy(update={"ahead_ms": 3_600_500}), unknown, None):
        metrics.set_backlog(relay_status().model_copy(update={"second_clock": clock}))
        told.append([[*samples(metrics, f"delaytopic_{name}").values()] for name in names])

    assert told == [[[3600.5], [1]], [[], [1]], [[], []]]


def test_what_shards_take_in_redis_is_told_and_how_many_of_them_stand_still() -> None:
    metrics = relay_metrics()
    sizes = [(1_000, True), (500, False), (None, False)]
    shards = [
        shard(number, ShardState.DELIVERING).model_copy(update={"redis_bytes": size, "redis_full": full})
        for number, (size, full) in enumerate(sizes)
    ]

    metrics.set_backlog(relay_status(shards=shards))
    told = [samples(metrics, f"delaytopic_redis_{name}") for name in ("bytes", "full_shards")]
    metrics.set_backlog(relay_status(shards=[shards[2]]))

    assert [list(each.values()) for each in told] == [[1_500], [1]]
    assert [samples(metrics, f"delaytopic_redis_{name}") for name in ("bytes", "full_shards")] == [{}, {}]


def test_two_relays_in_one_process_do_not_share_their_metrics() -> None:
    one, other = relay_metrics(), relay_metrics()

    one.add_backlog_error()

    assert samples(other, "delaytopic_backlog_errors_total") == {None: 0}


# -- histogram


EDGES_MS = (1, 10, 1_000)
SENT_MS = 1_795_269_600_000


def test_an_edge_belongs_to_its_bucket() -> None:
    histogram = MillisecondHistogram(EDGES_MS)

    for value_ms in (0, 1, 2, 10, 11, 1_000, 1_001):
        histogram.add(value_ms)

    assert histogram.buckets() == [("0.001", 2), ("0.01", 4), ("1.0", 6), ("+Inf", 7)]
    assert (histogram.count, histogram.sum_ms) == (7, 2_025)


@given(st.lists(st.integers(-5, 5_000)))
def test_a_batch_counts_what_its_records_count_one_by_one(lateness_ms: list[int]) -> None:
    by_batch, one_by_one = MillisecondHistogram(EDGES_MS), MillisecondHistogram(EDGES_MS)

    by_batch.add_lateness([SENT_MS - late_ms for late_ms in lateness_ms], SENT_MS)
    for late_ms in lateness_ms:
        one_by_one.add(late_ms)

    assert by_batch.buckets() == one_by_one.buckets()
    assert (by_batch.count, by_batch.sum_ms) == (one_by_one.count, one_by_one.sum_ms)


def test_batches_add_up() -> None:
    histogram = MillisecondHistogram(EDGES_MS)

    histogram.add_lateness([SENT_MS], SENT_MS)
    histogram.add_lateness([SENT_MS - 5, SENT_MS - 5_000], SENT_MS)

    assert histogram.buckets() == [("0.001", 1), ("0.01", 2), ("1.0", 2), ("+Inf", 3)]
    assert (histogram.count, histogram.sum_ms) == (3, 5_005)


def test_open_transactions_are_told_by_partition_with_their_age_and_what_they_hold_back() -> None:
    metrics, found = relay_metrics(), OpenTransaction(offset=7, since_ms=AS_OF_MS - 90_500, held_back=5)
    held = shard(3, ShardState.DELIVERING).model_copy(update={"open_transaction": found})

    metrics.set_backlog(relay_status(shards=[held, shard(4, ShardState.DELIVERING)]))

    assert samples(metrics, "delaytopic_open_transaction_seconds", "partition") == {"3": 90.5}
    assert samples(metrics, "delaytopic_held_back_records") == {None: 5}


def test_a_due_time_that_nobody_meant_is_counted_and_has_no_lateness() -> None:
    metrics = relay_metrics()

    metrics.observe_delivered([AS_OF_MS - 3, AS_OF_MS // 1_000, 0, FIRST_MEANT_MS - 1], AS_OF_MS)

    assert samples(metrics, "delaytopic_ancient_records_total") == {None: 3}
    assert samples(metrics, "delaytopic_delivered_records_total") == {None: 4}
    assert samples(metrics, "delaytopic_lateness_seconds_count") == {None: 1}
    assert samples(metrics, "delaytopic_lateness_seconds_sum") == {None: 0.003}


def test_the_first_due_time_that_may_be_meant_has_a_lateness() -> None:
    metrics = relay_metrics()

    metrics.observe_delivered([FIRST_MEANT_MS], FIRST_MEANT_MS + 2)

    assert samples(metrics, "delaytopic_ancient_records_total") == {None: 0}
    assert samples(metrics, "delaytopic_lateness_seconds_sum") == {None: 0.002}
