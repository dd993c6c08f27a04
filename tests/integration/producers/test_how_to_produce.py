"""The producers of docs/how-to/produce.md on a real Kafka and a real relay: each cancels what the others scheduled."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from tests.harness.fixtures import prepared
from tests.support.producers import Program, console_producer, other_programs, python_programs
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute
from tests.support.relay.route import PARTITIONS, Route

pytestmark = pytest.mark.integration


def each_cancels_what_the_others_scheduled(route: Route, programs: Sequence[Program]) -> None:
    """A relay keeps ids per partition: it counts as cancelled what met its cancel there."""
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    brokers, pairs = route.servers.bootstrap_servers, [*permutations(programs, 2)]
    identity = "order-{2} {0.language} {1.language}"

    for number, (first, second) in enumerate(pairs):
        first.run("schedule", identity.format(first, second, number), brokers, route.source)
    for number, (first, second) in enumerate(pairs):
        second.run("cancel", identity.format(first, second, number), brokers, route.source)

    wait_for(lambda: sum(record.value is None for record in route.read(route.source)) == len(pairs))
    wait_for(lambda: relay.status()["cancelledTotal"] == len(pairs), lambda: str(relay.status()))
    places = {record.at.partition for record in route.read(route.source)}
    assert relay.status()["deadLetteredTotal"] == 0
    assert len(places) > 1, "keys of one partition show nothing"


@pytest.mark.takes_long("four processes of Python import a Kafka client each")
def test_producers_in_python_cancel_each_others_schedules(make_route: MakeRoute, tmp_path: Path) -> None:
    each_cancels_what_the_others_scheduled(make_route(), python_programs(tmp_path))


@pytest.mark.nightly
@pytest.mark.takes_long("forty processes, a third of them with a JVM or Node")
def test_producers_in_four_languages_cancel_each_others_schedules(make_route: MakeRoute, tmp_path: Path) -> None:
    each_cancels_what_the_others_scheduled(make_route(), [*python_programs(tmp_path), *prepared(other_programs)])


@pytest.mark.nightly
@pytest.mark.takes_long("two JVMs")
def test_the_console_producer_schedules_and_cancels(make_route: MakeRoute) -> None:
    route = make_route()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    command = [*prepared(console_producer), "--bootstrap-server", route.servers.bootstrap_servers]
    command += ["--topic", route.source, "--reader-property", "parse.headers=true"]
    command += ["--reader-property", "parse.key=true", "--reader-property", "null.marker=NULL"]

    lines = "deliver-after:1h,deliver-id:order-17\torder-17\tpay\n"
    lines += "deliver-id:order-17,deliver-action:cancel\torder-17\tNULL\n"
    subprocess.run(command, input=lines, text=True, check=True, capture_output=True)

    wait_for(lambda: relay.status()["cancelledTotal"] == 1, lambda: str(relay.status()))
