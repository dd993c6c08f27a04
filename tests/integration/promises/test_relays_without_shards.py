"""More relays than shards, as while a Deployment rolls: new relays come before old ones go."""

from __future__ import annotations

import pytest
from tests.support.records import MakeRoute
from tests.support.relay_ends import page
from tests.support.relay_process import wait_for
from tests.support.route import PARTITIONS

pytestmark = pytest.mark.integration


def test_a_relay_that_the_group_has_no_shard_for_is_ready_and_takes_over_from_one_that_leaves(
    make_route: MakeRoute,
) -> None:
    route = make_route()
    old = [route.start_relay() for _ in range(PARTITIONS)]
    wait_for(lambda: all(len(relay.status()["shards"]) == 1 for relay in old))

    surplus = route.start_relay()

    wait_for(lambda: page(surplus, "/readyz")[0] == 200)
    assert surplus.status()["shards"] == []
    old[0].terminate()
    wait_for(lambda: [shard["state"] for shard in surplus.status()["shards"]] == ["Delivering"])
