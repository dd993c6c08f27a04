"""Dead letters are in the same transaction as the progress past them: a crash neither loses nor doubles one."""

from __future__ import annotations

import pytest
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, ClientHeaders, Route

pytestmark = pytest.mark.integration

BATCH = 2_000
BATCHES = 3


def send_mixed(route: Route) -> None:
    """Of four records one is malformed, one goes elsewhere, and the others are due within three seconds."""
    moment_ms = now_ms()
    choices: list[ClientHeaders] = [[], [("deliver-at", b"?")], [], [("deliver-to", route.other.encode())]]
    records = []
    for place in range(BATCH):
        headers = choices[place % 4] or [at(moment_ms + place * 3_000 // BATCH)]
        records.append(Sent(b"%d" % place, b"v", headers))
    produce(route.servers.bootstrap_servers, route.source, records)


@pytest.mark.nightly  # each day simulated relays are killed amid them
@pytest.mark.takes_long("sends three times, and a successor waits for the session of a relay that is killed")
def test_p1_p2_dead_letters_and_other_targets_are_exact_when_the_relay_is_killed_amid_them(
    make_route: MakeRoute,
) -> None:
    route = make_route()
    relay = route.start_relay().wait_until_delivering(PARTITIONS)

    send_mixed(route)
    wait_for(lambda: relay.status()["deadLetteredTotal"] > 0)
    relay.kill()
    send_mixed(route)
    route.start_relay().wait_until_delivering(PARTITIONS)
    send_mixed(route)

    verdict = route.settled_verdict()
    assert verdict.faults == {}
    assert verdict.dead_lettered == BATCHES * BATCH // 4
    assert verdict.delivered == verdict.schedules == BATCHES * BATCH * 3 // 4
    assert {letter.reason for letter in route.dead_letters()} == {"malformed-header"}
