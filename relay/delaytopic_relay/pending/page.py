"""Edge: the page /pending, from the request to its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from delaytopic_api.relay import PendingList, RelayConfig, RelayState, RelayStatus
from delaytopic_api.values import BackendType, source_mark
from delaytopic_relay.backlog.kafka.log import KafkaBuckets
from delaytopic_relay.backlog.kafka.manager import BucketNames
from delaytopic_relay.backlog.kafka.reader import BucketPendingReader
from delaytopic_relay.backlog.reader import PendingReader
from delaytopic_relay.backlog.redis.connection import connect_redis
from delaytopic_relay.backlog.redis.reader import RedisPendingReader
from delaytopic_relay.backlog.signing_keys import signer_of
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.kafka.connection import connection_settings
from delaytopic_relay.kafka.settings import bucket_reader_settings
from delaytopic_relay.pending.document import Subject, pending_list
from delaytopic_relay.pending.query import parse_query
from delaytopic_relay.pending.requests import ListingRequests
from delaytopic_relay.pending.search import list_pending
from delaytopic_relay.pending.snapshot import ShardCopy

if TYPE_CHECKING:
    from delaytopic_relay.engine.loop import Loop

CLIENT = "delaytopic-pending"
"""What the broker's logs and quotas call a listing's reader."""


class PendingPage:
    """Answers `GET /pending`."""

    def __init__(self, config: RelayConfig, status: Callable[[], RelayStatus]) -> None:
        """`status` is the last one counted."""
        self._config = config
        self._status = status
        self._requests = ListingRequests()
        self.source_partitions = 0
        """How many the source had when the relay started; set before there is a loop."""

    def serve(self, loop: Loop) -> None:
        """Called by the loop's thread after each turn."""
        self._requests.serve(loop)

    def answer(self, parameters: str) -> PendingList:
        """The document for the part of the address behind the question mark.

        Raises `BadRequest`, and `Unavailable` while the loop does not turn or too many ask.
        """
        query = parse_query(parameters)
        if self._status().state is not RelayState.RUNNING:
            raise Unavailable("this relay has nothing to list: it is not running yet, or is stopping; see /readyz")
        with self._requests.turn():
            copies = self._requests.ask(query)
            listing = list_pending(copies.shards.values(), partial(self._open_reader, copies.shards), query)
            target = self._config.target.topic
            subject = Subject(self._config.source.topic, self.source_partitions, target)
            return pending_list(self._status(), subject, query, copies, listing)

    def _open_reader(self, copies: Mapping[int, ShardCopy]) -> PendingReader:
        config, backend = self._config, self._config.backend
        if backend.redis is not None and backend.type is BackendType.REDIS_ZSET:
            return RedisPendingReader(connect_redis(backend.redis), backend.id, signer_of(backend))
        settings = bucket_reader_settings(connection_settings(config.kafka), config.group_id, CLIENT)
        log = KafkaBuckets(settings, BucketNames(backend.id))
        return BucketPendingReader(log, copies, source_mark(config.source.topic), signer_of(backend))
