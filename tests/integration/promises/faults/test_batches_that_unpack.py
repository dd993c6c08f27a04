"""Batches of the source that relays cannot read, on a real Kafka: a partition stands still, and the others do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.support.relay.batches import produce_batch
from tests.support.relay.faults import assert_exact
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import Route

from delaytopic_relay.core.recovery import MOST_TAKEOVERS

pytestmark = pytest.mark.integration

SMALL_MEMORY, MEMORY = {"memory": "64Mi"}, {"memory": "512Mi"}
"""Of which a batch may unpack to half."""
ROOM_KIB = 48 << 10
"""For a relay that has begun: half as much again as a batch may unpack to."""
BOMB = [1_000_000] * 64
"""Unpacked, and as records for the target: 61 MiB. In the log: 64 kB."""
LARGER_THAN_ANY = [101_000_000]
"""More than the client unpacks of zstd, which is as much as it would receive."""
MOST_STARTS = 20
"""A relay that ends by what its client fetches before it is told to pause has not been counted."""


def send(route: Route, partition: int, records: int = 5) -> None:
    due_ms = now_ms() + 500
    sent = [Sent(b"k", b"%d" % n, [at(due_ms)], partition) for n in range(records)]
    produce(route.servers.bootstrap_servers, route.source, sent)


def send_batch(route: Route, sizes: list[int], compression: str = "gzip") -> list[int]:
    return produce_batch(route.servers.bootstrap_servers, route.source, sizes, compression, 0, [at(now_ms())])


def delivered(route: Route, partition: int) -> int:
    return sum(record.source.partition == partition for record in route.delivered())


def private_kib(relay: RelayProcess) -> int:
    status = Path(f"/proc/{relay.child.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))


def still(relay: RelayProcess) -> Mapping[str, Any] | None:
    shards = relay.status()["shards"]
    return next((shard for shard in shards if shard["reason"] == "BatchUnreadable"), None)


def ended_or_still(relay: RelayProcess) -> bool:
    if relay.exit_code() is not None:
        return True
    try:
        return still(relay) is not None
    except (OSError, AssertionError):
        return False


def restart_as_kubelet_does(relay: RelayProcess, most: int = MOST_STARTS) -> int:
    """Start a relay again whenever it ends, until a partition stands still; returns how often that was."""
    for starts in range(1, most):
        relay.start()
        wait_for(lambda: ended_or_still(relay), relay.why)
        if relay.exit_code() is None:
            return starts
    raise AssertionError(f"it ended {most} times: {relay.why()}")


@pytest.mark.nightly  # each day such a batch is found by processes that read it on trial
@pytest.mark.takes_long("a relay ends three times and is started again, and two more start")
def test_a_batch_by_which_relays_end_is_named_after_a_few_starts_and_others_are_delivered(
    make_route: MakeRoute,
) -> None:
    # Given a relay with a bound on its memory that has delivered of both partitions
    route = make_route(partitions=2, limits=SMALL_MEMORY)
    send(route, 0)
    send(route, 1)
    relay = route.start_relay()
    wait_for(lambda: (delivered(route, 0), delivered(route, 1)) == (5, 5), relay.why)
    relay.data_kib = private_kib(relay) + ROOM_KIB
    assert relay.terminate(30) == 0
    relay.start().wait_until_delivering(2)

    # When a batch comes that unpacks to more than it has
    offsets = send_batch(route, BOMB)
    send(route, 0)
    wait_for(lambda: relay.exit_code() is not None, relay.why)
    starts = restart_as_kubelet_does(relay)

    # Then its partition is named, and the other one goes on
    shard = still(relay)
    assert shard is not None
    send(route, 1)
    wait_for(lambda: delivered(route, 1) == 10, relay.why)
    message = str(shard["message"])
    assert starts >= MOST_TAKEOVERS
    assert (shard["partition"], shard["state"]) == (0, "Failed")
    assert f"{route.source}[0] from offset {offsets[0]}" in message
    assert "more than 32 MiB" in message
    assert f"kafka-delete-records up to offset {offsets[-1] + 1}" in message
    assert delivered(route, 0) == 5
    assert "delaytopic_standing_shards{" in relay.get("/metrics")
    assert relay.terminate(30) == 0

    # And with more memory all of it is delivered
    route.spec = {**route.spec, "limits": MEMORY}
    larger = route.start_relay().wait_until_delivering(2)
    wait_for(lambda: larger.status()["deliveredTotal"] == len(BOMB) + 5, larger.why)
    assert_exact(route.settled_verdict())


@pytest.mark.takes_long("a relay finds the batch unreadable twice, and looks again after five seconds")
def test_a_batch_that_the_client_cannot_read_is_named_and_nothing_else_waits(make_route: MakeRoute) -> None:
    # Given a batch between others that is larger than the client unpacks
    route = make_route(partitions=2)
    send(route, 0)
    (offset,) = send_batch(route, LARGER_THAN_ANY, "zstd")
    send(route, 0)
    send(route, 1)

    # When a relay meets it
    relay = route.start_relay()
    shard: Mapping[str, Any] = wait_for(lambda: still(relay), relay.why)

    # Then all but what is behind it is delivered
    wait_for(lambda: (delivered(route, 0), delivered(route, 1)) == (5, 5), relay.why)
    assert (shard["partition"], shard["state"], relay.exit_code()) == (0, "Failed", None)
    assert f"the batch at offset {offset} of partition 0 cannot be read" in str(shard["message"])

    # And once somebody has deleted it, the rest as well
    admin = AdminClient({"bootstrap.servers": route.servers.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition(route.source, 0, offset + 1)]).values()
    deleted.result(30)
    wait_for(lambda: delivered(route, 0) == 10, relay.why)
    wait_for(lambda: still(relay) is None, relay.why)
