"""The way from one relay to its backlog: requests and answers get lost or late, and the server may be away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from redis.exceptions import RedisError
from tests.simulation.faults import Fault, Gate, What
from tests.simulation.world.kafka import Kafka
from tests.support.relay.backlog.memory_store import MemoryBacklogStore

from delaytopic_relay.backlog.store import Page, Segment, Slice, StoreVersion
from delaytopic_relay.core.ids import IdEntry
from delaytopic_relay.errors import BacklogMoved, BacklogUnavailable

T = TypeVar("T")


class Line:
    """One relay's connection to the server of the backlog."""

    def __init__(
        self,
        kafka: Kafka,
        gate: Gate,
        is_away: Callable[[], bool],
        silence: Callable[[], Exception],
        load_ms: int = 0,
    ) -> None:
        """`silence` makes the error that the client raises when nobody answers; a load takes `load_ms`."""
        self._load_ms = load_ms
        self._kafka = kafka
        self._gate = gate
        self._is_away = is_away
        self._silence = silence

    def call(self, effect: str, act: Callable[[], T]) -> T:
        """Ask the server."""

        def there() -> T:
            if self._is_away():
                self._kafka.counts["path: backlog away"] += 1
                raise self._silence()
            if effect == "load" and self._load_ms:
                self._kafka.pass_time(self._load_ms)
            return act()

        def no_answer(fault: Fault) -> T:
            if fault.what is What.UNANSWERED:
                there()
            elif fault.what is What.LATE:
                self._kafka.later(fault.length_ms, lambda: self._arrive(there))
            raise self._silence()

        return self._gate.call(effect, there, no_answer)

    def _arrive(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (BacklogMoved, BacklogUnavailable, RedisError):
            self._kafka.counts["path: late request refused"] += 1
        else:
            self._kafka.counts["path: late request carried out"] += 1


class DistantStore:
    """The memory backlog as one relay sees it over its line."""

    def __init__(self, server: MemoryBacklogStore, line: Line) -> None:
        self._server = server
        self._line = line

    def position(self, shard: int) -> StoreVersion | None:
        return self._line.call("position", lambda: self._server.position(shard))

    def put(
        self,
        shard: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        return self._line.call("put", lambda: self._server.put(shard, expected, new, segments, ids))

    def page(self, shard: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        return self._line.call("slices", lambda: self._server.page(shard, expected, from_ms, count))

    def load(self, shard: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        return self._line.call("load", lambda: self._server.load(shard, expected, slice_, first, count))

    def load_first(self, shard: int, expected: StoreVersion, slices: Sequence[Slice], count: int) -> list[list[bytes]]:
        return self._line.call("load", lambda: self._server.load_first(shard, expected, slices, count))

    def ids(self, shard: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        return self._line.call("ids", lambda: self._server.ids(shard, expected, names))

    def drop(self, shard: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        return self._line.call("drop", lambda: self._server.drop(shard, expected, slices, ids))

    def reset(self, shard: int, slices: Iterable[Slice]) -> None:
        self._line.call("drop", lambda: self._server.reset(shard, slices))

    def free_bytes(self) -> int | None:
        return self._server.free_bytes()

    @property
    def topic_mark(self) -> str:
        return self._server.topic_mark

    def topic(self, shard: int) -> str | None:
        return self._line.call("topic", lambda: self._server.topic(shard))

    def note_topic(self, shard: int) -> None:
        self._line.call("topic", lambda: self._server.note_topic(shard))

    def forget_topic(self, shard: int, topic_mark: str) -> int:
        return self._line.call("drop", lambda: self._server.forget_topic(shard, topic_mark))

    def close(self) -> None:
        self._server.close()
