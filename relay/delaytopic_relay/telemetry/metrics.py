"""Edge: what a relay tells Prometheus. Every metric is described in docs/reference/metrics.md.

`telemetry.Telemetry` counts in the loop's thread, with calls per batch and never per record; the thread that serves the
page reads. All times and sizes are in base units, seconds and bytes, whatever the calls take.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from delaytopic_api.records import DeadLetterReason, is_ancient
from delaytopic_api.relay import LATENESS_EDGES_MS, Ending, RelayStatus, ShardReason, ShardState
from delaytopic_relay.errors import (
    BacklogMoved,
    BucketLost,
    CommitUnknown,
    Fenced,
    ProducerOutdated,
    RecordsRefused,
    StateInDoubt,
    TransactionAborted,
    Unanswered,
)

INFINITY = "+Inf"
_GO_ON = (ShardReason.RETENTION_PASSED, ShardReason.TARGET_UNAVAILABLE)
STANDING_STILL = [reason for reason in ShardReason if reason not in _GO_ON]


class MillisecondHistogram:
    """A histogram of integers up to fixed edges, an edge included; not safe for threads.

    It is filled by the batch: a call per record would cost more than sending it.
    """

    def __init__(self, edges_ms: Sequence[int]) -> None:
        """`edges_ms` ascends; what lies above the last is counted too."""
        self.edges_ms = tuple(edges_ms)
        self._up_to = [0] * len(self.edges_ms)
        self.count = 0
        self.sum_ms = 0

    def add(self, value_ms: int) -> None:
        """Count one value."""
        for place in range(bisect_left(self.edges_ms, value_ms), len(self.edges_ms)):
            self._up_to[place] += 1
        self.count += 1
        self.sum_ms += value_ms

    def add_lateness(self, due_times_ms: Iterable[int], sent_ms: int) -> None:
        """Count, for each due time, how long after it `sent_ms` was; fastest if they come in order."""
        due = sorted(due_times_ms)
        first = len(due)
        for place, edge_ms in enumerate(self.edges_ms):
            # All from here on were due at most an edge ago; the next, longer edge reaches further back.
            first = bisect_left(due, sent_ms - edge_ms, 0, first)
            self._up_to[place] += len(due) - first
        self.count += len(due)
        self.sum_ms += len(due) * sent_ms - sum(due)

    def buckets(self) -> list[tuple[str, int]]:
        """Prometheus' buckets: the edge in seconds, and how many were at most that."""
        edges = [(str(edge_ms / 1000), count) for edge_ms, count in zip(self.edges_ms, self._up_to, strict=True)]
        return [*edges, (INFINITY, self.count)]


LABELS = ("delaytopic_namespace", "delaytopic_name")
"""The labels of every series: the DelayTopic, which need not live in the namespace of its relays."""

DURATION_EDGES_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
RECOVERY_CAUSES = (
    "assigned",
    *(
        error.cause
        for error in (
            StateInDoubt,
            BacklogMoved,
            TransactionAborted,
            RecordsRefused,
            Unanswered,
            ProducerOutdated,
            CommitUnknown,
            Fenced,
            BucketLost,
        )
    ),
)


class RelayMetrics(Collector):
    """All metrics of one relay, in a registry of their own."""

    def __init__(self, namespace: str, name: str) -> None:
        """`namespace` and `name` of the DelayTopic."""
        self._labels = (namespace, name)
        self._lock = Lock()
        self._lateness = MillisecondHistogram(LATENESS_EDGES_MS)
        self._commits = MillisecondHistogram(DURATION_EDGES_MS)
        self._puts = MillisecondHistogram(DURATION_EDGES_MS)
        self._superseded = self._cancelled = self._too_late = 0
        self._backlog_errors = self._foreign_entries = self._misspelt = self._ancient = 0
        self._missing_offsets = self._lost_records = self._missed_slots = 0
        # Series that start with their first event have no rate for it: all known ones start at 0.
        self._dead_letters = Counter(dict.fromkeys(map(str, DeadLetterReason), 0))
        self._outcomes = Counter(dict.fromkeys(map(str, Ending), 0))
        self._recoveries = Counter(dict.fromkeys(RECOVERY_CAUSES, 0))
        self._status: RelayStatus | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    # -- counting

    def observe_delivered(self, due_times_ms: Sequence[int], sent_ms: int) -> None:
        """Records that were sent at `sent_ms`, and are committed; those that are ancient have no lateness."""
        due = sorted(due_times_ms)
        ancient = bisect_left(due, True, key=lambda due_ms: not is_ancient(due_ms))
        with self._lock:
            self._ancient += ancient
            self._lateness.add_lateness(due[ancient:] if ancient else due, sent_ms)

    def add_outcomes(self, outcomes: Mapping[Ending, int]) -> None:
        """Count outcomes that are committed, by kind."""
        for ending, count in outcomes.items():
            self._outcomes[ending.value] += count

    def add_missed_slots(self, slots: int) -> None:
        """Count slots of what recurs that were passed over."""
        with self._lock:
            self._missed_slots += slots

    def add_dead_letter(self, reason: str) -> None:
        """One record went to the dead-letter topic."""
        with self._lock:
            self._dead_letters[reason] += 1

    def add_commands(self, superseded: int, cancelled: int, too_late: int) -> None:
        """Commands with ids took effect, or came too late for it."""
        with self._lock:
            self._superseded += superseded
            self._cancelled += cancelled
            self._too_late += too_late

    def observe_commit(self, duration_ms: int) -> None:
        """One tick was committed."""
        with self._lock:
            self._commits.add(duration_ms)

    def observe_put(self, duration_ms: int) -> None:
        """The backlog acknowledged one write."""
        with self._lock:
            self._puts.add(duration_ms)

    def add_recovery(self, cause: str) -> None:
        """One shard was recovered: `assigned`, or the `cause` of what was lost."""
        with self._lock:
            self._recoveries[cause] += 1

    def add_backlog_error(self) -> None:
        """The backlog did not answer."""
        with self._lock:
            self._backlog_errors += 1

    def add_foreign_entry(self) -> None:
        """Something was skipped that somebody else wrote into the relay's own state."""
        with self._lock:
            self._foreign_entries += 1

    def add_missing_offsets(self, offsets: int) -> None:
        """A shard was to read what the source no longer has."""
        with self._lock:
            self._missing_offsets += offsets

    def add_lost_records(self, records: int) -> None:
        """Pending records were lost with a former topic."""
        with self._lock:
            self._lost_records += records

    def add_misspelt(self) -> None:
        """A record without a control header has a header that resembles one."""
        with self._lock:
            self._misspelt += 1

    def set_backlog(self, status: RelayStatus) -> None:
        """Set what is pending, as of the latest count."""
        self._status = status

    # -- reading

    def render(self) -> bytes:
        """The page: Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """All metrics of this moment; called by the registry."""
        with self._lock:
            families = [*self._counters(), *self._histograms()]
        yield from families
        if self._status is not None:
            yield from self._backlog(self._status)

    def _counters(self) -> Iterator[Metric]:
        delivered = self._lateness.count + self._ancient
        yield self._counter("delivered_records", "Records sent to a target topic and committed.", delivered)
        text = "Of these, due in 1973 or before, and sent at once: mostly a time in seconds, read as milliseconds."
        yield self._counter("ancient_records", text, self._ancient)
        yield self._counters_by(
            "dead_letter_records", "Records sent to the dead-letter topic.", "reason", self._dead_letters
        )
        text = "Outcomes written and committed, where the DelayTopic has a topic for them."
        yield self._counters_by("outcome_records", text, "outcome", self._outcomes)
        text = "Slots of records that recur that were passed over, as they were past when it came to them."
        yield self._counter("missed_slots", text, self._missed_slots)
        yield self._counter("superseded_records", "Schedules dropped for a newer one with their id.", self._superseded)
        yield self._counter("cancelled_records", "Schedules withdrawn by a cancel.", self._cancelled)
        yield self._counter("cancels_too_late", "Cancels that found nothing pending.", self._too_late)
        yield self._counters_by("recoveries", "Shards recovered from committed state.", "cause", self._recoveries)
        yield self._counter("backlog_errors", "Times that the backlog did not answer.", self._backlog_errors)
        text = "Entries of the backlog or the group's metadata that were skipped, as no relay of this group wrote them."
        yield self._counter("foreign_entries", text, self._foreign_entries)
        text = "Source offsets that were to be read and that retention had deleted."
        yield self._counter("missing_offsets", text, self._missing_offsets)
        text = "Pending records that were lost with a former source topic, about, when another was accepted."
        yield self._counter("lost_records", text, self._lost_records)
        text = "Records without a control header, and with a header whose name resembles one."
        yield self._counter("misspelt_header_records", text, self._misspelt)

    def _histograms(self) -> Iterator[Metric]:
        yield self._histogram("lateness", "Sent minus due, of all delivered but ancient records.", self._lateness)
        yield self._histogram("commit", "How long a tick's commit took.", self._commits)
        yield self._histogram("backlog_write", "How long the backlog took to acknowledge a write.", self._puts)

    def _backlog(self, status: RelayStatus) -> Iterator[Metric]:
        oldest_ms, next_ms = status.oldest_overdue_ms, status.next_due_ms
        age_ms = status.as_of_ms - oldest_ms if oldest_ms is not None else 0
        next_seconds = next_ms / 1000 if next_ms is not None else None
        states = Counter(dict.fromkeys(map(str, ShardState), 0))
        states.update(str(shard.state) for shard in status.shards)
        text = "Records taken in and not yet delivered, without those known to be cancelled or replaced."
        yield self._gauge("pending_records", text, status.pending - status.withdrawn)
        yield self._gauge("overdue_records", "Records due and not yet delivered.", status.overdue)
        yield self._gauge("oldest_overdue_seconds", "How long ago the oldest overdue record was due.", age_ms / 1000)
        yield self._gauge("next_due_timestamp_seconds", "The nearest due time; absent without one.", next_seconds)
        yield self._gauge("ingest_lag_records", "Records of the source not yet taken in.", status.ingest_lag)
        yield self._gauge("replay_lag_records", "Source offsets still to be read again.", status.replay_lag)
        yield self._gauge("memory_bytes", "Held by schedules in memory.", status.memory_bytes)
        yield self._gauge("speedups", "1 with the speedups in C, 0 in Python alone.", int(status.speedups))
        yield self._gauge("busy_records_per_second", "Delivery rate with a batch due; absent before.", status.busy_rate)
        shards = GaugeMetricFamily("delaytopic_shards", "Source partitions of this relay.", labels=(*LABELS, "state"))
        for state, count in states.items():
            shards.add_metric((*self._labels, state), count)
        yield shards
        reasons = Counter(dict.fromkeys(map(str, STANDING_STILL), 0))
        reasons.update(str(shard.reason) for shard in status.shards if shard.reason in reasons)
        text = "Source partitions that stand still until a person says how they go on."
        yield self._gauges_by("standing_shards", text, "reason", reasons)
        yield from self._clock(status)
        yield from self._transactions(status)
        yield self._unanswered(status)
        yield from self._redis(status)
        yield from self._buckets(status)

    def _clock(self, status: RelayStatus) -> Iterator[Metric]:
        """Report how the relay's clock compares with the backend's; no series where that is switched off."""
        clock = status.second_clock
        ahead_ms = clock.ahead_ms if clock is not None else None
        ahead_s = ahead_ms / 1000 if ahead_ms is not None else None
        text = "How far the relay's clock is ahead of the backend's, negative if it is behind; absent before an answer."
        yield self._gauge("clock_ahead_seconds", text, ahead_s)
        text = "1 while nothing is delivered until the relay's clock and the backend's agree, else 0."
        yield self._gauge("clock_holds_delivery", text, int(not clock.agrees) if clock is not None else None)

    def _transactions(self, status: RelayStatus) -> Iterator[Metric]:
        """Report what producers' transactions hold back; a series for each partition with one."""
        by_partition = {
            one.partition: one.open_transaction for one in status.shards if one.open_transaction is not None
        }
        ages = {number: (status.as_of_ms - each.since_ms) / 1000 for number, each in by_partition.items()}
        text = "How long a producer's transaction has been seen open that keeps the source from being read further."
        yield self._gauges_by("open_transaction_seconds", text, "partition", ages)
        text = "Source offsets behind open transactions of producers, which are read once these end."
        yield self._gauge("held_back_records", text, sum(each.held_back for each in by_partition.values()))

    def _unanswered(self, status: RelayStatus) -> Metric:
        """Report each topic, or partition of one, that does not answer; no series where all do."""
        text = "Source partitions that wait for a topic that does not answer; 0 where its records are dead letters."
        labels = (*LABELS, "topic", "partition")
        family = GaugeMetricFamily("delaytopic_unanswered_topic_waiting_shards", text, labels=labels)
        for each in status.unanswered:
            partition = "" if each.partition is None else str(each.partition)
            family.add_metric((*self._labels, each.topic, partition), each.waiting)
        return family

    def _redis(self, status: RelayStatus) -> Iterator[Metric]:
        """Report what the shards take in Redis; no series with another backend."""
        sizes = [shard.redis_bytes for shard in status.shards if shard.redis_bytes is not None]
        full = sum(shard.redis_full for shard in status.shards)
        text = "Source partitions for which Redis has no room: it is full, or they have used up their share."
        yield self._gauge(
            "redis_bytes", "Memory of Redis that the backlog takes, about.", sum(sizes) if sizes else None
        )
        yield self._gauge("redis_full_shards", text, full if sizes else None)

    def _buckets(self, status: RelayStatus) -> Iterator[Metric]:
        """Each bucket of all shards together."""
        pending: Counter[int] = Counter()
        split: Counter[int] = Counter()
        for bucket in (bucket for shard in status.shards for bucket in shard.buckets):
            pending[bucket.bucket] += bucket.pending
            split[bucket.bucket] += bucket.split
        yield self._gauges_by("bucket_pending_records", "Records that wait in a bucket.", "bucket", pending)
        yield self._gauges_by("bucket_split_shards", "Shards in which a bucket's range is split.", "bucket", split)

    # -- shapes

    def _counter(self, name: str, text: str, value: int) -> Metric:
        family = CounterMetricFamily(f"delaytopic_{name}", text, labels=LABELS)
        family.add_metric(self._labels, value)
        return family

    def _counters_by(self, name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
        family = CounterMetricFamily(f"delaytopic_{name}", text, labels=(*LABELS, label))
        for key, value in values.items():
            family.add_metric((*self._labels, key), value)
        return family

    def _gauges_by(self, name: str, text: str, label: str, values: Mapping[int, float] | Mapping[str, int]) -> Metric:
        family = GaugeMetricFamily(f"delaytopic_{name}", text, labels=(*LABELS, label))
        for key, value in values.items():
            family.add_metric((*self._labels, str(key)), value)
        return family

    def _gauge(self, name: str, text: str, value: float | None) -> Metric:
        family = GaugeMetricFamily(f"delaytopic_{name}", text, labels=LABELS)
        if value is not None:
            family.add_metric(self._labels, value)
        return family

    def _histogram(self, name: str, text: str, histogram: MillisecondHistogram) -> Metric:
        family = HistogramMetricFamily(f"delaytopic_{name}_seconds", text, labels=LABELS)
        family.add_metric(self._labels, histogram.buckets(), histogram.sum_ms / 1000)
        return family
