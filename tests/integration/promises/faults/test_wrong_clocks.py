"""Relays under clocks that are wrong, as real processes, with a real Kafka and Redis."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BOTH_BACKENDS, BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import Route
from tests.support.shifted_clock import ShiftedClock

pytestmark = pytest.mark.integration

HOUR_S = 3_600
LATER_MS = 1_800_000


def send(route: Route, due_times_ms: list[int]) -> None:
    """Records of one partition whose values say when they are due."""
    records = [Sent(b"k", b"%d" % due_ms, [at(due_ms)], 0) for due_ms in due_times_ms]
    produce(route.servers.bootstrap_servers, route.source, records)


def arrived(route: Route) -> list[int]:
    """The due times of what was delivered, in order."""
    return [int(record.value or b"") for record in route.read(route.target)]


def earliest_ms(route: Route) -> int:
    """The least time that a record came after it was due, by the broker's clock."""
    return min(record.timestamp_ms - int(record.value or b"") for record in route.read(route.target))


def second_clock(relay: RelayProcess) -> dict[str, Any]:
    found: dict[str, Any] = relay.status()["secondClock"]
    return found


def gauge(relay: RelayProcess, name: str) -> float:
    found = re.search(rf"^{name}{{.*}} (\S+)$", relay.get("/metrics"), re.MULTILINE)
    assert found is not None
    return float(found[1])


def until_taken_in(relay: RelayProcess, records: int) -> None:
    def taken_in() -> bool:
        shards = [shard for shard in relay.status()["shards"] if shard["partition"] == 0]
        return bool(shards) and shards[0]["position"] >= records

    wait_for(taken_in, relay.why)


@pytest.mark.nightly  # each day simulated clocks are ahead, and a real one jumps
@pytest.mark.takes_long("a relay waits in vain for some seconds, and starts twice")
@BOTH_BACKENDS
def test_a_clock_that_is_an_hour_ahead_at_the_start_delivers_nothing_and_all_of_it_once_it_is_right(
    make_route: MakeRoute, tmp_path: Path
) -> None:
    # Given a relay whose clock is ahead, beside one of another DelayTopic whose clock is right
    route, other, clock = make_route(), make_route(), ShiftedClock(tmp_path / "clock")
    clock.set_wrong(HOUR_S)
    relay = route.relay()
    relay.module = clock.module
    relay.start()
    beside = other.start_relay().wait_until_delivering(other.partitions)
    relay.wait_until_delivering(route.partitions)
    due_times_ms = [now_ms() + 2_000 + 50 * number for number in range(40)]
    for each in (route, other):
        send(each, [*due_times_ms, now_ms() + LATER_MS])

    # When their time has come
    wait_for(lambda: len(arrived(other)) == len(due_times_ms), beside.why)
    until_taken_in(relay, len(due_times_ms) + 1)

    # Then the one has delivered in time, the other nothing, and it says why
    assert (arrived(route), arrived(other)) == ([], due_times_ms)
    said = second_clock(relay)
    assert (said["agrees"], said["aheadMs"]) == (False, pytest.approx(HOUR_S * 1_000, abs=2_000))
    assert "nothing is delivered: the clock of this relay is 3600" in said["message"]
    wait_for(lambda: gauge(relay, "delaytopic_clock_holds_delivery") == 1, relay.why)
    assert gauge(relay, "delaytopic_clock_ahead_seconds") == pytest.approx(HOUR_S, abs=2)

    # And when it starts with a clock that is right, all of it leaves once
    assert relay.terminate() == 0
    clock.set_wrong(0)
    relay.start()
    wait_for(lambda: len(arrived(route)) >= len(due_times_ms), relay.why)
    assert relay.terminate() == 0
    assert (arrived(route), earliest_ms(route) >= 0, earliest_ms(other) >= 0) == (due_times_ms, True, True)


@pytest.mark.takes_long("a clock jumps and is set right, and relays look at it each second")
@BUCKETS_NIGHTLY
def test_a_clock_that_jumps_while_a_relay_works_holds_delivery_until_it_is_set_right(
    make_route: MakeRoute, tmp_path: Path
) -> None:
    # Given a relay at work
    route, clock = make_route(), ShiftedClock(tmp_path / "clock")
    relay = route.relay()
    relay.module = clock.module
    relay.start().wait_until_delivering(route.partitions)
    wait_for(lambda: second_clock(relay)["agrees"], relay.why)

    # When its clock jumps before records are due
    due_times_ms = [now_ms() + 6_000 + 50 * number for number in range(20)]
    send(route, [*due_times_ms, now_ms() + LATER_MS])
    clock.set_wrong(HOUR_S)
    wait_for(lambda: not second_clock(relay)["agrees"], relay.why)
    until_taken_in(relay, len(due_times_ms) + 1)
    assert arrived(route) == []

    # Then they leave when it is set right, each once and none early
    clock.set_wrong(0)
    wait_for(lambda: len(arrived(route)) >= len(due_times_ms), relay.why)
    assert (arrived(route), earliest_ms(route) >= 0) == (due_times_ms, True)


@pytest.mark.takes_long("a relay starts twice")
@BOTH_BACKENDS
@pytest.mark.nightly
def test_what_is_produced_after_a_clock_has_come_back_is_in_time_and_what_left_early_does_not_leave_again(
    make_route: MakeRoute, tmp_path: Path
) -> None:
    # Given a relay that believes its clock, which is ahead, and has delivered early
    route, clock = make_route(), ShiftedClock(tmp_path / "clock")
    clock.set_wrong(HOUR_S)
    relay = route.relay()
    relay.module, relay.environment = clock.module, {"DELAYTOPIC_SECOND_CLOCK": "0"}
    early_ms = [now_ms() + LATER_MS + number for number in range(20)]
    send(route, early_ms)
    relay.start()
    wait_for(lambda: len(arrived(route)) >= len(early_ms), relay.why)
    relay.kill()

    # When the clock is right, and records come that are due before those
    clock.set_wrong(0)
    relay.start().wait_until_delivering(route.partitions)
    due_times_ms = [now_ms() + 2_000 + 50 * number for number in range(20)]
    # The first one is due before what left early, and long after all that follow it.
    send(route, [now_ms() + LATER_MS // 3, *due_times_ms])
    wait_for(lambda: len(arrived(route)) >= len(early_ms) + len(due_times_ms), relay.why)

    # Then they leave in their time, and nothing leaves twice
    found = route.read(route.target)
    assert [int(record.value or b"") for record in found] == [*early_ms, *due_times_ms]
    assert min(record.timestamp_ms - int(record.value or b"") for record in found[len(early_ms) :]) >= 0
    (said,) = (shard["message"] for shard in relay.status()["shards"] if shard["partition"] == 0)
    assert "was delivered before its time" in said
