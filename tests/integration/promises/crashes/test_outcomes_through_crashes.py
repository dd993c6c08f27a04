"""Outcomes on real servers: each schedule has exactly one, and it is true, whatever is killed and whoever wins."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from tests.support.relay.faults import pass_time
from tests.support.relay.process import wait_for
from tests.support.relay.records import (
    BOTH_BACKENDS,
    BUCKETS_NIGHTLY,
    MakeRoute,
    Sent,
    now_ms,
    produce,
)
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route

from delaytopic_api.records import DEAD_LETTER_SOURCE, RECEIPT, Receipt
from delaytopic_api.relay import Ending, Outcome, RecordPlace
from delaytopic_gateway.client.raw_records import RawRecord

pytestmark = pytest.mark.integration

KILLS = 3
BATCH = 1_500
RACE = 10_000

Place = tuple[int, int]


class Asked(NamedTuple):
    """A record of the source: the id that it names, and whether it cancels."""

    name: bytes
    cancels: bool


def a_schedule(name: bytes, due_ms: int) -> Sent:
    return Sent(name, b"v", [("deliver-id", name), ("deliver-at", b"%d" % due_ms)])


def a_cancel(name: bytes) -> Sent:
    headers: ClientHeaders = [("deliver-id", name), ("deliver-action", b"cancel"), ("deliver-requested-by", b"ann")]
    return Sent(name, None, headers)


def send(route: Route, records: Sequence[Sent]) -> dict[Place, Asked]:
    """Produce records; tells where they are, and what they ask for."""
    places = produce(route.servers.bootstrap_servers, route.source, records)
    asked = [Asked(record.key or b"", record.value is None) for record in records]
    return {(place.partition, place.offset): each for place, each in zip(places, asked, strict=True)}


def outcomes_of(route: Route) -> list[Outcome]:
    return [Outcome.model_validate_json(record.value or b"") for record in route.read(route.outcomes)]


def source_place(outcome: Outcome) -> Place:
    return outcome.source.partition, outcome.source.offset


def place_in_source(record: RawRecord) -> Place:
    headers = dict(record.headers)
    if (receipt := headers.get(RECEIPT)) is not None:
        found = Receipt.parse(receipt)
        return found.partition, found.offset
    _, partition, offset = (headers[DEAD_LETTER_SOURCE] or b"").decode().rsplit(":", 2)
    return int(partition), int(offset)


def untrue(route: Route, asked: dict[Place, Asked], outcomes: Sequence[Outcome]) -> list[str]:
    """Return what is wrong with outcomes, compared with what was asked for and what is on the target."""
    delivered = {
        place_in_source(each): RecordPlace(topic=route.target, partition=each.at.partition, offset=each.at.offset)
        for each in route.read(route.target)
    }
    wrong = [f"{each} ended twice" for each, times in Counter(map(source_place, outcomes)).items() if times > 1]
    ended_by = Counter(
        (each.source.partition, each.ended_by.offset)
        for each in outcomes
        if each.ended_by is not None and each.outcome is Ending.CANCELLED
    )
    by_place = {source_place(each): each for each in outcomes}
    for place, what in asked.items():
        outcome = by_place.get(place)
        if what.cancels:
            answers = ended_by[place] + (outcome is not None)
            wrong += [f"{answers} answers to the cancel at {place}"] if answers != 1 else []
        elif outcome is None:
            wrong.append(f"no outcome of {place}")
        elif (outcome.outcome is Ending.DELIVERED, outcome.target) != (place in delivered, delivered.get(place)):
            wrong.append(f"{outcome} and on the target {delivered.get(place)}")
        elif outcome.ended_by is not None:
            by = asked[place[0], outcome.ended_by.offset]
            if by != Asked(what.name, outcome.outcome is Ending.CANCELLED) or outcome.ended_by.offset < place[1]:
                wrong.append(f"{outcome} by {by}")
    wrong += [f"{place} was delivered, and nobody asked for it" for place in delivered.keys() - asked.keys()]
    return wrong


def counted(outcomes: Sequence[Outcome]) -> Counter[str]:
    return Counter(str(each.outcome) for each in outcomes)


def wait_until_all_is_told(route: Route, asked: dict[Place, Asked]) -> list[Outcome]:
    wait_for(lambda: len(answered(outcomes_of(route))) >= len(asked), route.relays[-1].why)
    return outcomes_of(route)


def answered(outcomes: Sequence[Outcome]) -> set[Place]:
    """Return the places of all records that an outcome tells of: schedules, and cancels."""
    cancels = (each.ended_by for each in outcomes if each.outcome is Ending.CANCELLED)
    return {*map(source_place, outcomes), *((each.partition, each.offset) for each in cancels if each is not None)}


def a_batch(rng: random.Random, batch: int) -> list[Sent]:
    """Schedules that are due within six seconds, beyond the horizon and before it, and commands for their ids."""
    names = [b"%d-%d" % (batch, number) for number in range(BATCH // 3)]
    records = [a_schedule(name, now_ms() + rng.randrange(6_000)) for name in names]
    for name in rng.choices(names, k=BATCH - len(names)):
        records.append(a_cancel(name) if rng.random() < 0.4 else a_schedule(name, now_ms() + rng.randrange(6_000)))
    return records


@pytest.mark.nightly  # each day simulated relays are killed amid them
@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
@BOTH_BACKENDS
def test_each_schedule_has_one_outcome_and_it_is_true_when_relays_are_killed(make_route: MakeRoute) -> None:
    rng = random.Random(51)
    route = make_route(outcomes={})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    asked: dict[Place, Asked] = {}

    for kill in range(KILLS):
        asked |= send(route, a_batch(rng, kill))
        pass_time(rng.uniform(0.05, 2.0))
        relay.kill()
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
    outcomes = wait_until_all_is_told(route, asked)

    assert untrue(route, asked, outcomes) == []
    assert {Ending.DELIVERED, Ending.CANCELLED, Ending.REPLACED, Ending.NOT_PENDING} <= {
        each.outcome for each in outcomes
    }


@pytest.mark.nightly
@pytest.mark.takes_long("twenty thousand commands, and their outcomes")
@BOTH_BACKENDS
def test_ten_thousand_cancels_and_replacements_race_with_the_delivery_and_each_outcome_is_true(
    make_route: MakeRoute, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(7)
    route = make_route(outcomes={})
    route.start_relay().wait_until_delivering(PARTITIONS)
    names = [b"r-%d" % number for number in range(RACE)]

    # Given schedules that are all due within a second, and commands for all of them that arrive in that second
    due_ms = now_ms() + 5_000
    asked = send(route, [a_schedule(name, due_ms + rng.randrange(1_000)) for name in names])
    pass_time((due_ms - now_ms()) / 1_000)
    for first in range(0, RACE, 1_000):
        some = names[first : first + 1_000]
        asked |= send(route, [a_cancel(n) if rng.random() < 0.5 else a_schedule(n, now_ms() + 300) for n in some])
    outcomes = wait_until_all_is_told(route, asked)

    record_property("outcomes", str(dict(counted(outcomes))))
    assert untrue(route, asked, outcomes) == []


@pytest.mark.nightly
@pytest.mark.takes_long("a successor waits for the session of each relay that is killed")
@BOTH_BACKENDS
def test_ten_thousand_commands_for_what_waits_beyond_the_horizon_are_answered_once_through_kills(
    make_route: MakeRoute, record_property: Callable[[str, object], None]
) -> None:
    rng = random.Random(8)
    route = make_route(outcomes={})
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    names = [b"f-%d" % number for number in range(RACE)]
    due_ms = now_ms() + 60_000
    asked = send(route, [a_schedule(name, due_ms) for name in names])

    # When relays are killed amid ticks that have told the backlog of commands, and may not have committed them
    for first in range(0, RACE, 2_500):
        some = names[first : first + 2_500]
        asked |= send(route, [a_cancel(n) if rng.random() < 0.5 else a_schedule(n, due_ms + 1_000) for n in some])
        pass_time(rng.uniform(0.0, 0.1))
        relay.kill()
        relay = route.start_relay().wait_until_delivering(PARTITIONS)
    outcomes = wait_until_all_is_told(route, asked)

    record_property("outcomes", str(dict(counted(outcomes))))
    assert untrue(route, asked, outcomes) == []
    assert counted(outcomes)["NotPending"] == 0


@BUCKETS_NIGHTLY
def test_an_outcome_says_what_it_tells_of_and_where_it_is(make_route: MakeRoute) -> None:
    route = make_route(outcomes={})
    route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + 600_000
    asked = send(route, [a_schedule(b"a", due_ms), a_cancel(b"a"), a_cancel(b"a"), Sent(b"k", b"v", [])])

    outcomes = wait_until_all_is_told(route, asked)
    wait_for(lambda: len(route.read(route.outcomes)) == 3, route.relays[-1].why)
    told = {record.key: record for record in route.read(route.outcomes)}
    outcomes = outcomes_of(route)

    assert untrue(route, asked, outcomes) == []
    (partition, first), (_, second), (_, third), (plain, offset) = asked
    cancelled, not_pending = (each for each in outcomes if each.id == "a")
    source = [RecordPlace(topic=route.source, partition=partition, offset=each) for each in (first, second, third)]
    assert (cancelled.outcome, cancelled.due_ms, cancelled.source, cancelled.ended_by, cancelled.requested_by) == (
        Ending.CANCELLED,
        due_ms,
        source[0],
        source[1],
        "ann",
    )
    assert (not_pending.outcome, not_pending.source, not_pending.requested_by) == (
        Ending.NOT_PENDING,
        source[2],
        "ann",
    )
    assert {key: record.at.partition for key, record in told.items()} == {
        b"a": partition,
        f"{route.source}:{plain}:{offset}".encode(): plain,
    }


@pytest.mark.nightly  # each day simulated relays write them without
def test_outcomes_are_written_without_transactions_too(make_route: MakeRoute) -> None:
    route = make_route(outcomes={}, guarantee="AtLeastOnce")
    route.start_relay().wait_until_delivering(PARTITIONS)
    asked = send(route, [a_schedule(b"a", now_ms() + 600_000), a_cancel(b"a"), a_schedule(b"b", now_ms())])

    outcomes = wait_until_all_is_told(route, asked)

    assert untrue(route, asked, outcomes) == []
