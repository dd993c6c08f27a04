"""The simulated Redis answers and stores what a real one does, for everything that `RedisBacklogStore` asks."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.shared_servers import SharedRedis
from tests.simulation.faults import Gate
from tests.simulation.world.kafka import Kafka
from tests.simulation.world.redis_server import RedisServer, redis_store
from tests.simulation.world.store_client import Line
from tests.support.relay.backlog.stores import slices_of
from tests.support.servers.redis_server import RedisFields

from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import BacklogStore, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogMoved, BacklogUnavailable

SLICES = (Slice(0, 1_000), Slice(1_000, 1_000), Slice(60_000, 60_000), Slice(-1_000, 1_000))
POSITIONS = tuple(StoreVersion(owner, counter, counter // 2) for owner in "ab" for counter in range(3))
NAMES = (b"x", b"y", b"z")

Request = Callable[[BacklogStore], Any]


def a_request(rng: random.Random, now: StoreVersion | None) -> Request:
    """Something to ask of a backlog at this version, mostly with the right one."""
    expected = now if rng.random() < 0.8 else rng.choice(POSITIONS)
    shown = expected or POSITIONS[0]
    slices, names = rng.sample(SLICES, rng.randrange(3)), rng.sample(NAMES, rng.randrange(3))
    segments = [Segment(slice_, rng.randrange(1, 4), b"%d" % rng.randrange(99)) for slice_ in slices]
    ids = {name: IdEntry(rng.randrange(9), rng.randrange(9), 0) for name in names}
    new = rng.choice(POSITIONS)
    return rng.choice(
        [
            lambda store: store.version(0),
            lambda store: slices_of(store, 0),
            lambda store: store.put(0, expected, new, segments, ids),
            lambda store: store.put(0, expected, new, segments, ids),
            lambda store: store.load(0, shown, rng.choice(SLICES), 0, 2),
            lambda store: store.load_first(0, shown, slices, 1),
            lambda store: store.ids(0, shown, names),
            lambda store: store.drop(0, shown, slices, names),
        ]
    )


def answer(store: BacklogStore, request: Request, state: Any, rng: random.Random) -> Any:
    """Return what comes back; the same chance for every backlog that is asked."""
    rng.setstate(state)
    try:
        return request(store)
    except BacklogMoved as error:
        return str(error)


@pytest.mark.integration
@pytest.mark.parametrize("seed", range(20))
def test_the_simulated_redis_answers_as_a_real_one(redis: SharedRedis, seed: int) -> None:
    rng = random.Random(seed)
    kafka = Kafka(1, 1_000)
    line = Line(kafka, Gate(kafka.counts, lambda fault: None), lambda: False, lambda: BacklogUnavailable(""))
    simulated: BacklogStore = redis_store(RedisServer(), line, "")
    real: BacklogStore = RedisBacklogStore(connect_redis(RedisFields(url=redis.url)), f"test.{uuid.uuid4()}")

    for _ in range(60):
        request, state = a_request(rng, simulated.version(0)), rng.getstate()
        assert answer(simulated, request, state, rng) == answer(real, request, state, rng)

    assert slices_of(simulated, 0) == slices_of(real, 0)
    real.close()
