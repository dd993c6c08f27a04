"""/healthz, /readyz, /metrics and /status of a relay with a backlog that is known to the record."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.request import urlopen

import pytest
from tests.support.metrics_page import Series, samples, value_of
from tests.support.relay.ends import page
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS
from tests.support.relay.routes import STEADY

from delaytopic_api.relay import RelayState, RelayStatus, ShardState, ShardStatus
from delaytopic_gateway.client.raw_records import Coordinates

pytestmark = [pytest.mark.integration, BUCKETS_NIGHTLY]

GONE = 3
"""Delivered from each shard, before its backlog."""
AHEAD_S = {0: (), 1: (57,), 2: (57, 115, 115), 3: (195, 3_600)}
"""Seconds from now until the records of each shard are due: 25 s and more within a bin; one is beyond all."""
EACH = 10
HORIZON_S = 60
LOOK_AHEAD_S = 600


@dataclass
class Run:
    """The pages, once everything was taken in; and the coordinates of the last record that each shard delivered."""

    relay: RelayProcess
    status: RelayStatus
    metrics: dict[Series, float]
    gone_ms: int
    base_ms: int
    last_gone: dict[int, Coordinates]
    group: str


@pytest.fixture(scope="module")
def run(make_shared_route: MakeRoute) -> Run:
    limits = {"horizon": f"{HORIZON_S}s", "lookAhead": f"{LOOK_AHEAD_S}s", **STEADY}
    route = make_shared_route(limits=limits, schedule={"maxDelay": "2h"})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    servers, gone_ms = route.servers.bootstrap_servers, now_ms()
    gone = [Sent(b"k", b"v", [at(gone_ms)], shard) for shard in AHEAD_S for _ in range(GONE)]
    where = produce(servers, route.source, gone)
    wait_for(lambda: relay.status()["deliveredTotal"] >= len(gone))
    base_ms = now_ms()
    far = [
        Sent(b"k", b"v", [at(base_ms + ahead_s * 1_000)], shard)
        for shard, moments in AHEAD_S.items()
        for ahead_s in moments
        for _ in range(EACH)
    ]
    produce(servers, route.source, far)
    wait_for(lambda: relay.status()["pending"] >= len(far) and committed_all(relay))
    status = RelayStatus.model_validate_json(relay.get("/status"))
    last_gone = {place.partition: place for place in where}
    return Run(relay, status, samples(relay), gone_ms, base_ms, last_gone, route.config().group_id)


def committed_all(relay: RelayProcess) -> bool:
    """Tell whether L moved on to what is only in memory: what is in the backlog needs no reading again."""
    shards = {shard["partition"]: shard for shard in relay.status()["shards"]}
    return bool(shards[3]["committedOffset"] == shards[3]["position"] == GONE + 2 * EACH)


def test_a_relay_at_work_is_healthy_and_ready(run: Run) -> None:
    assert page(run.relay, "/healthz")[0] == 200
    assert page(run.relay, "/readyz") == (200, "running\n")
    assert page(run.relay, "/nothing")[0] == 404


def test_the_pages_say_what_they_are_and_are_not_to_be_kept(run: Run) -> None:
    kinds = {}
    for path in ("/healthz", "/metrics", "/status"):
        with urlopen(f"http://127.0.0.1:{run.relay.port()}{path}", timeout=5) as answer:
            kinds[path] = answer.headers["Content-Type"].split(";")[0], answer.headers["Cache-Control"]

    assert kinds == {
        "/healthz": ("text/plain", "no-store"),
        "/metrics": ("text/plain", "no-store"),
        "/status": ("application/json", "no-store"),
    }


def test_the_status_counts_the_whole_relay(run: Run, backend: str) -> None:
    status = run.status
    backlog = EACH * sum(map(len, AHEAD_S.values()))

    assert (status.state, status.backend, status.guarantee) == (RelayState.RUNNING, backend, "ExactlyOnce")
    assert status.delay_topic == run.group.removeprefix("delaytopic.").replace(".", "/")
    assert status.started_at_ms < run.gone_ms < status.as_of_ms <= now_ms()
    assert (status.delivered_total, status.dead_lettered_total) == (GONE * PARTITIONS, 0)
    assert (status.pending, status.overdue, status.oldest_overdue_ms, status.ingest_lag) == (backlog, 0, None, 0)
    assert near(status.next_due_ms, run.base_ms + 57_000)
    assert status.memory_bytes > 0


def test_each_shard_tells_offset_position_and_cursor(run: Run) -> None:
    def told(shard: ShardStatus) -> tuple[object, ...]:
        cursor = shard.cursor
        return shard.state, shard.committed_offset, shard.position, cursor and (cursor.due_ms, cursor.offset)

    # L is the first offset that is only in memory: what is due in 57 s is within the horizon, the rest in the backlog.
    only_in_memory = {0: GONE, 1: GONE, 2: GONE, 3: GONE + 2 * EACH}
    assert {shard.partition: told(shard) for shard in run.status.shards} == {
        number: (
            ShardState.DELIVERING,
            only_in_memory[number],
            GONE + EACH * len(AHEAD_S[number]),
            (run.gone_ms, run.last_gone[number].offset),
        )
        for number in AHEAD_S
    }


def test_each_shard_tells_what_is_pending_and_when_it_is_due(run: Run) -> None:
    for shard in run.status.shards:
        ahead_s = AHEAD_S[shard.partition]
        assert (shard.pending, shard.overdue, shard.ingest_lag) == (EACH * len(ahead_s), 0, 0)
        assert (shard.next_due_ms is None) == (not ahead_s)
        assert not ahead_s or near(shard.next_due_ms, run.base_ms + min(ahead_s) * 1_000)


def test_the_due_histogram_counts_up_to_the_look_ahead_in_bins_of_round_times(run: Run) -> None:
    status = run.status
    edges_s = [(item.up_to_ms - status.as_of_ms) / 1_000 for item in status.due_histogram]

    def filled(histogram_of: RelayStatus | ShardStatus) -> dict[float, int]:
        bins = zip(edges_s, histogram_of.due_histogram, strict=True)
        return {edge_s: item.records for edge_s, item in bins if item.records}

    assert edges_s == [1, 2, 5, 10, 20, 30, 60, 120, 300, LOOK_AHEAD_S]
    assert {shard.partition: filled(shard) for shard in status.shards} == {
        0: {},
        1: {60: EACH},
        2: {60: EACH, 120: 2 * EACH},
        3: {300: EACH},
    }
    assert filled(status) == {60: 2 * EACH, 120: 2 * EACH, 300: EACH}


def test_the_metrics_tell_the_same(run: Run) -> None:
    status, page = run.status, run.metrics

    assert {
        name: value_of(page, f"delaytopic_{name}")
        for name in ("delivered_records_total", "pending_records", "overdue_records", "ingest_lag_records")
    } == {
        "delivered_records_total": status.delivered_total,
        "pending_records": status.pending,
        "overdue_records": 0,
        "ingest_lag_records": 0,
    }
    assert value_of(page, "delaytopic_shards", state="Delivering") == PARTITIONS
    assert value_of(page, "delaytopic_lateness_seconds_count") == GONE * PARTITIONS
    labels = {key: value for (name, pairs) in page if name == "delaytopic_pending_records" for key, value in pairs}
    assert labels == {"delaytopic_namespace": "tests", "delaytopic_name": run.group.rsplit(".", 1)[1]}


def test_a_question_for_pending_records_that_is_wrong_is_answered_with_what_is_allowed(run: Run) -> None:
    code, text = page(run.relay, "/pending?limit=10001")

    assert (code, text.partition(":")[0]) == (400, "limit='10001'")
    assert json.loads(page(run.relay, "/pending?limit=0")[1])["records"] == []


def near(found_ms: int | None, expected_ms: int) -> bool:
    """To the second: what is in the backlog is known by its slice."""
    return found_ms is not None and expected_ms - 1_000 <= found_ms <= expected_ms
