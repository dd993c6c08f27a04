"""A real Redis for tests: one server for the whole run, and settings like those of the relay's configuration."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.support.relay.backlog.stores import slices_of

from delaytopic_relay.backlog.redis.connection import RedisConnection, connect_redis
from delaytopic_relay.backlog.redis.store import RedisBacklogStore
from delaytopic_relay.backlog.store import Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import ConfigurationError


@dataclass(frozen=True)
class RedisFields:
    """The fields of `backend.redis`, as `connect_redis` reads them."""

    url: str | None = None
    url_file: str | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    username_file: str | None = None
    password_file: str | None = None


def refusal(fields: RedisFields) -> str:
    """Return what is said about settings that are wrong."""
    with pytest.raises(ConfigurationError) as caught:
        connect_redis(fields)
    return str(caught.value)


def serves_as_a_store(connection: RedisConnection, backend_id: str = "shop") -> bool:
    """Make every call of a backlog, among them megabytes each way, and close the connection."""
    store, near, blob = RedisBacklogStore(connection, backend_id), Slice(0, 1000), bytes(range(256)) * (12 << 10)
    first, second = StoreVersion("relay-a", 1, 0), StoreVersion("relay-a", 2, 10)
    store.put(0, store.version(0), first, [], {})
    store.put(0, first, second, [Segment(near, 1, blob)], {b"id": IdEntry(1, 2, 3)})
    answers = slices_of(store, 0), store.load(0, second, near, 0, 1), store.ids(0, second, [b"id"])
    store.drop(0, second, [near], [b"id"])
    store.close()
    return answers == ({near: 1}, [blob], [IdEntry(1, 2, 3)])
