"""The way from one relay to its backlog: requests and answers get lost or late, and the server may be away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from redis.exceptions import RedisError
from tests.simulation.faults import Fault, Gate, What
from tests.simulation.world.kafka import Kafka
from tests.support.relay.backlog.memory_store import MemoryBacklogStore

from delaytopic_relay.backlog.store import Page, Segment, Slice, StoreVersion
from delaytopic_relay.core.id_states import IdEntry
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

    def version(self, partition: int) -> StoreVersion | None:
        return self._line.call("position", lambda: self._server.version(partition))

    def put(
        self,
        partition: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        return self._line.call("put", lambda: self._server.put(partition, expected, new, segments, ids))

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        return self._line.call("slices", lambda: self._server.page(partition, expected, from_ms, count))

    def load(self, partition: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        return self._line.call("load", lambda: self._server.load(partition, expected, slice_, first, count))

    def load_first(
        self, partition: int, expected: StoreVersion, slices: Sequence[Slice], count: int
    ) -> list[list[bytes]]:
        return self._line.call("load", lambda: self._server.load_first(partition, expected, slices, count))

    def ids(self, partition: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        return self._line.call("ids", lambda: self._server.ids(partition, expected, names))

    def id_pages(self, partition: int) -> Iterator[Mapping[bytes, IdEntry]]:
        return iter(self._line.call("ids", lambda: [*self._server.id_pages(partition)]))

    def drop(self, partition: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        return self._line.call("drop", lambda: self._server.drop(partition, expected, slices, ids))

    def reset(self, partition: int, slices: Iterable[Slice]) -> None:
        self._line.call("drop", lambda: self._server.reset(partition, slices))

    def free_bytes(self) -> int | None:
        return self._server.free_bytes()

    @property
    def topic_mark(self) -> str:
        return self._server.topic_mark

    def topic(self, partition: int) -> str | None:
        return self._line.call("topic", lambda: self._server.topic(partition))

    def note_topic(self, partition: int) -> None:
        self._line.call("topic", lambda: self._server.note_topic(partition))

    def forget_topic(self, partition: int, topic_mark: str) -> int:
        return self._line.call("drop", lambda: self._server.forget_topic(partition, topic_mark))

    def close(self) -> None:
        self._server.close()
