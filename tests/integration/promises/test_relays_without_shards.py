"""More relays than shards, as while a Deployment rolls: new relays come before old ones go."""

from __future__ import annotations

import pytest
from tests.support.relay.ends import page
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute

pytestmark = pytest.mark.integration


def test_a_relay_that_the_group_has_no_shard_for_is_ready_and_takes_over_from_one_that_leaves(
    make_route: MakeRoute,
) -> None:
    route = make_route(partitions=1)
    old = route.start_relay().wait_until_delivering(1)

    surplus = route.start_relay()

    wait_for(lambda: page(surplus, "/readyz")[0] == 200)
    assert surplus.status()["shards"] == []
    assert old.shards() == {0}
    assert old.terminate() == 0
    wait_for(lambda: [shard["state"] for shard in surplus.status()["shards"]] == ["Delivering"])
