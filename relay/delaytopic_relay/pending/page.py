"""Edge: the page /pending, from the request to its document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from delaytopic_api.relay import PendingList, RelayConfig, RelayState, RelayStatus
from delaytopic_relay.backlog.protocol import Backlog, PendingReader
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.pending.document import Subject, pending_list
from delaytopic_relay.pending.query import parse_query
from delaytopic_relay.pending.requests import ListingRequests
from delaytopic_relay.pending.search import list_pending
from delaytopic_relay.pending.snapshot import ShardCopy


class PendingPage:
    """Answers `GET /pending`."""

    def __init__(self, config: RelayConfig, status: Callable[[], RelayStatus]) -> None:
        """`status` is the last one counted."""
        self._config = config
        self._status = status
        self._requests = ListingRequests()
        self._source_partitions = 0
        self._backlog: Backlog | None = None

    def begin(self, source_partitions: int, backlog: Backlog) -> None:
        """Note what there is to list; called before there is a loop."""
        self._source_partitions = source_partitions
        self._backlog = backlog

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
            subject = Subject(self._config.source.topic, self._source_partitions, target)
            return pending_list(self._status(), subject, query, copies, listing)

    def _open_reader(self, copies: Mapping[int, ShardCopy]) -> PendingReader:
        assert self._backlog is not None
        return self._backlog.reader({partition: copy.stored.state for partition, copy in copies.items()})
