"""Edge: the page /pending, from the request to its document.

The pages' threads ask and the loop's thread answers, between two of its turns. The loop pays a comparison a turn while
nobody asks; a request costs it one bounded copy a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import BoundedSemaphore, Event, Lock

from delaytopic_api.relay import PendingList, RelayConfig, RelayState, RelayStatus
from delaytopic_relay.backlog.protocol import Backlog, PendingReader, Shard
from delaytopic_relay.engine.loop import Loop
from delaytopic_relay.errors import Unavailable
from delaytopic_relay.pending.document import Subject, pending_list
from delaytopic_relay.pending.query import PendingQuery, parse_query
from delaytopic_relay.pending.search import list_pending
from delaytopic_relay.pending.snapshot import Copies, ShardCopy, copy_of, may_be_copied

ENOUGH_FOR_A_TURN = 1_000
"""Schedules copied."""
PATIENCE_S = 5.0
"""A tick is closed at the latest half a second after it began, and then everything may be copied."""
MOST_ASKING = 8
"""Requests at the same time: one is answered, the others wait for their turn."""


class PendingRequests:
    """One request at a time."""

    def __init__(self) -> None:
        self._asking = BoundedSemaphore(MOST_ASKING)
        self._answered = Lock()
        self._open: _Request | None = None

    @contextmanager
    def turn(self, patience_s: float = PATIENCE_S) -> Iterator[None]:
        """Wait for the other listings, of which each takes memory until it is done. Raises `Unavailable`."""
        if not self._asking.acquire(blocking=False):
            raise Unavailable(f"{MOST_ASKING} listings are under way or wait for their turn; ask again")
        try:
            if not self._answered.acquire(timeout=patience_s):
                raise Unavailable("other listings are under way; ask again")
            try:
                yield
            finally:
                self._answered.release()
        finally:
            self._asking.release()

    def ask(self, query: PendingQuery, patience_s: float = PATIENCE_S) -> Copies:
        """Called by a page's thread in its turn: wait for the loop's answer. Raises `Unavailable`."""
        try:
            request = self._open = _Request(query)
            if not request.answered.wait(patience_s):
                raise Unavailable(
                    f"the relay's loop has not come to a point where it can be listed for {patience_s:g} s; "
                    "see /readyz and the log for what it waits for"
                )
            return request.copies
        finally:
            self._open = None

    def serve(self, loop: Loop) -> None:
        """Called by the loop's thread after each turn."""
        request = self._open
        if request is not None and not request.answered.is_set():
            request.serve(loop.shards, loop.waiting)


class _Request:
    def __init__(self, query: PendingQuery) -> None:
        self._query = query
        self._copied: dict[int, ShardCopy] = {}
        self.copies = Copies({}, {})
        self.answered = Event()

    def serve(self, shards: Mapping[int, Shard], waiting: Mapping[int, str]) -> None:
        """Copy what may be copied now; done when every shard is that is still here."""
        wanted = [number for number in shards if self._query.partition in (None, number)]
        copied = 0
        for number in wanted:
            if number not in self._copied and may_be_copied(shards[number]):
                self._copied[number] = copy_of(shards[number], self._query)
                copied += len(self._copied[number].schedules)
                if copied >= ENOUGH_FOR_A_TURN:
                    break
        if self._copied.keys() >= set(wanted):
            self.copies = Copies({number: self._copied[number] for number in wanted}, dict(waiting))
            self.answered.set()


class PendingPage:
    """Answers `GET /pending`."""

    def __init__(self, config: RelayConfig, status: Callable[[], RelayStatus]) -> None:
        """`status` is the last one counted."""
        self._config = config
        self._status = status
        self._requests = PendingRequests()
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
