"""A backlog in Redis (or Valkey, or a Redis Cluster): a few keys for each shard, see `redis_layout`.

Writes are Lua scripts that begin with the comparison of the version. Reads ask for the version behind the data,
in one pipeline: a script takes two to three times as long to answer megabytes, and a full Redis refuses MULTI even
for reads, so that nothing could leave it any more.

Which commands a relay's user needs is in docs/reference/backends.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import resources
from itertools import zip_longest
from typing import Any, NamedTuple, TypeVar

from redis.exceptions import NoScriptError

from delaytopic_relay.backlog.redis.connection import Client, RedisConnection
from delaytopic_relay.backlog.redis.layout import (
    NO_VERSION,
    ShardKeys,
    check_backend_id,
    decode_count,
    decode_id_entry,
    decode_page,
    decode_slice,
    decode_version,
    encode_id_entry,
    encode_version,
    stored_bytes,
    topic_key,
)
from delaytopic_relay.backlog.redis.parts import MAX_ITEMS, Part, split, versions_between
from delaytopic_relay.backlog.redis.preflight import free_bytes
from delaytopic_relay.backlog.store import Page, PutRefused, Segment, Slice, StoreVersion, moved
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import BacklogFull, CorruptState

ID_PAGE = 1_000
DROP_SLICES = 100  # in a script: Redis frees lists of megabytes in its one thread unless they are very long

Item = TypeVar("Item")
Command = tuple[bytes | str | int, ...]


class State(NamedTuple):
    """A shard after a script: the text of its version, and about how many bytes of memory it takes."""

    version: bytes
    stored_bytes: int


class Script(NamedTuple):
    """A Lua script and the digest that Redis keeps it under."""

    text: str
    digest: str

    @classmethod
    def read(cls, name: str) -> Script:
        """The script in this package's file of that name."""
        text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    def run(self, client: Client, keys: Sequence[bytes], arguments: Sequence[bytes | int]) -> State:
        """The script's answer; a server that does not know the script yet learns it."""
        try:
            answer: Any = client.evalsha(self.digest, len(keys), *keys, *arguments)
        except NoScriptError:
            answer = client.eval(self.text, len(keys), *keys, *arguments)
        version, *sizes = answer
        return State(bytes(version), stored_bytes(*sizes))


class RedisBacklogStore:
    """A `BacklogStore` in Redis.

    A put of more than `MAX_ITEMS` segments and ids, or `MAX_BYTES`, is several scripts, see `redis_parts`.
    """

    def __init__(self, connection: RedisConnection, backend_id: str, topic_mark: str = "") -> None:
        """The backlog whose keys begin with this id, of the source with this mark. Raises `ConfigurationError`."""
        self._connection, self._client = connection, connection.client
        self._id = check_backend_id(backend_id)
        self.topic_mark = topic_mark
        self._keys: dict[int, ShardKeys] = {}
        self._put = Script.read("put.lua")
        self._drop = Script.read("drop.lua")

    def version(self, partition: int) -> StoreVersion | None:
        """See `BacklogStore.version`. Raises `BacklogUnavailable`, `CorruptState`."""
        key = self._of(partition).version
        found: Any = self._connection.ask(lambda: self._client.get(key))
        return decode_version(found, key)

    def put(
        self,
        partition: int,
        expected: StoreVersion | None,
        new: StoreVersion,
        segments: Sequence[Segment],
        ids: Mapping[bytes, IdEntry],
    ) -> int:
        """See `BacklogStore.put`. Raises `BacklogMoved`, `PutRefused`, `BacklogUnavailable`."""
        parts = split(segments, ids)
        versions = versions_between(expected, new, len(parts))
        steps = [encode_version(step) for step in versions]
        done = stored = 0
        while done < len(parts):
            try:
                found, stored = self._put_part(partition, steps[done], steps[done + 1], parts[done])
            except BacklogFull as error:
                reached = versions[done]
                if reached is None:
                    raise
                before = [segment for part in parts[:done] for segment in part.segments]
                raise PutRefused(str(error), reached, before) from error
            if found not in steps[done + 1 :]:
                raise moved(partition, expected, decode_version(found, self._of(partition).version))
            done = steps.index(found, done + 1)
        return stored

    def page(self, partition: int, expected: StoreVersion, from_ms: int, count: int) -> Page:
        """See `BacklogStore.page`. Raises `BacklogMoved`, `BacklogUnavailable`, `CorruptState`.

        The sorted set and the counts name the same slices. Where one has more, a slice could be missed.
        """
        keys = self._of(partition)
        scored, scheduled, counted = self._read(
            partition, expected, page_range(keys, from_ms, count), ("ZCARD", keys.slices), ("HLEN", keys.counts)
        )
        if scheduled != counted:
            raise CorruptState(f"{keys.slices.decode()} names {scheduled} slices, and {keys.counts.decode()} {counted}")
        slices = decode_page(scored, keys.slices)
        if not slices:
            return Page.of([], count)
        (counts,) = self._read(partition, expected, ("HMGET", keys.counts, *scored[::2]))
        records = [decode_count(text, keys.counts) for text in counts]
        return Page.of([*zip(slices, records, strict=True)], count)

    def load(self, partition: int, expected: StoreVersion, slice_: Slice, first: int, count: int) -> list[bytes]:
        """See `BacklogStore.load`. Raises `BacklogMoved`, `BacklogUnavailable`."""
        return list(self._read(partition, expected, self._range(partition, slice_, first, count))[0])

    def load_first(
        self, partition: int, expected: StoreVersion, slices: Sequence[Slice], count: int
    ) -> list[list[bytes]]:
        """See `BacklogStore.load_first`. Raises `BacklogMoved`, `BacklogUnavailable`."""
        commands = [self._range(partition, slice_, 0, count) for slice_ in slices]
        return list(map(list, self._read(partition, expected, *commands)))

    def _range(self, partition: int, slice_: Slice, first: int, count: int) -> Command:
        last = first + max(count, 0) - 1
        portion = (first, last) if last >= 0 else (1, 0)  # a negative last counts from the end
        return ("LRANGE", self._of(partition).list(slice_), *portion)

    def ids(self, partition: int, expected: StoreVersion, names: Sequence[bytes]) -> list[IdEntry | None]:
        """See `BacklogStore.ids`. Raises `BacklogMoved`, `BacklogUnavailable`, `CorruptState`."""
        key = self._of(partition).ids
        if not names:
            self._read(partition, expected)
            return []
        answers = [self._read(partition, expected, ("HMGET", key, *portion))[0] for portion in _portions(names)]
        return [decode_id_entry(text, key) for answer in answers for text in answer]

    def id_pages(self, partition: int) -> Iterator[Mapping[bytes, IdEntry]]:
        """See `BacklogStore.id_pages`. Raises `BacklogUnavailable`."""
        key, cursor = self._of(partition).ids, 0
        while True:
            found: Any = self._connection.ask(lambda: self._client.hscan(key, cursor, count=ID_PAGE))  # noqa: B023
            cursor, texts = found
            page = dict[bytes, IdEntry]()
            for name, text in texts.items():
                with suppress(CorruptState):
                    if (entry := decode_id_entry(text, key)) is not None:
                        page[name] = entry
            yield page
            if not cursor:
                return

    def drop(self, partition: int, expected: StoreVersion, slices: Sequence[Slice], ids: Sequence[bytes]) -> int:
        """See `BacklogStore.drop`. Raises `BacklogMoved`, `BacklogUnavailable`."""
        keys, before, stored = self._of(partition), encode_version(expected), 0
        for some_slices, some_ids in zip_longest(_portions(slices, DROP_SLICES), _portions(ids), fillvalue=()):
            names = [*keys[:5], *(keys.list(slice_) for slice_ in some_slices)]
            found, stored = self._run(self._drop, names, [before, len(keys.lists) + 1, *some_ids])
            if found != before:
                raise moved(partition, expected, decode_version(found, keys.version))
        return stored

    def reset(self, partition: int, slices: Iterable[Slice]) -> None:
        """See `BacklogStore.reset`. Raises `BacklogUnavailable`.

        All keys go in one command: a list that went later could have been filled again by then.
        """
        self._forget(self._of(partition), slices)

    def topic(self, partition: int) -> str | None:
        """See `BacklogStore.topic`. Raises `BacklogUnavailable`."""
        found: Any = self._connection.ask(lambda: self._client.get(topic_key(self._id, partition)))
        return found.decode(errors="replace") if found is not None else None

    def note_topic(self, partition: int) -> None:
        """See `BacklogStore.note_topic`. Raises `BacklogUnavailable`."""
        self._connection.ask(lambda: self._client.set(topic_key(self._id, partition), self.topic_mark.encode()))

    def forget_topic(self, partition: int, topic_mark: str) -> int:
        """See `BacklogStore.forget_topic`. Raises `BacklogUnavailable`."""
        keys = ShardKeys.of(self._id, partition, topic_mark)
        names = [b"%d:%d" % slice_ for slice_ in self._listed(keys.counts, "HKEYS")]
        records = 0
        for portion in _portions(names) if names else ():
            counts: Any = self._connection.ask(lambda: self._client.execute_command("HMGET", keys.counts, *portion))  # type: ignore[no-untyped-call]  # noqa: B023
            with suppress(CorruptState):
                records += sum(decode_count(text, keys.counts) for text in counts)
        self._forget(keys, ())
        return records

    def _forget(self, keys: ShardKeys, slices: Iterable[Slice]) -> None:
        known = {*slices, *self._listed(keys.slices, "ZRANGE", 0, -1), *self._listed(keys.counts, "HKEYS")}
        names = [*keys[:5], *map(keys.list, known)]
        self._connection.ask(lambda: self._client.unlink(*names))

    def _listed(self, key: bytes, command: str, *arguments: int) -> set[Slice]:
        """Return the slices that one of the backlog's records names, as far as relays wrote them."""
        slices = set[Slice]()
        try:
            names: Any = self._connection.ask(lambda: self._client.execute_command(command, key, *arguments))  # type: ignore[no-untyped-call]
        except CorruptState:
            return slices
        for name in names:
            with suppress(CorruptState):
                slices.add(decode_slice(name, key))
        return slices

    def free_bytes(self) -> int | None:
        """See `BacklogStore.free_bytes`: what is left of maxmemory, on the fullest primary of a cluster."""
        return free_bytes(self._connection)

    def close(self) -> None:
        """See `BacklogStore.close`."""
        self._client.close()

    def _of(self, partition: int) -> ShardKeys:
        if partition not in self._keys:
            self._keys[partition] = ShardKeys.of(self._id, partition, self.topic_mark)
        return self._keys[partition]

    def _put_part(self, partition: int, before: bytes, after: bytes, part: Part) -> State:
        """Do one part, if the version is the one before."""
        keys = self._of(partition)
        names = [*keys[:5]]
        arguments: list[bytes | int] = [before, after, len(keys.lists) + 1]
        for slice_, records, data in part.segments:
            names.append(keys.list(slice_))
            arguments += (records, data)
        for name, entry in part.ids:
            arguments += (name, encode_id_entry(entry))
        return self._run(self._put, names, arguments)

    def _run(self, script: Script, keys: Sequence[bytes], arguments: Sequence[bytes | int]) -> State:
        return self._connection.ask(lambda: script.run(self._client, keys, arguments))

    def _read(self, partition: int, expected: StoreVersion, *commands: Command) -> list[Any]:
        """The answers of reading commands, if the version is the expected one after them.

        Then it was at the commands, too: no version comes back, but with the writes that led to it.
        """
        key = self._of(partition).version

        def in_one_go() -> list[Any]:
            with self._client.pipeline(transaction=False) as pipeline:
                for command in (*commands, ("GET", key)):
                    pipeline.execute_command(*command)
                return list(pipeline.execute())

        *answers, found = self._connection.ask(in_one_go)
        if (found or NO_VERSION) != encode_version(expected):
            raise moved(partition, expected, decode_version(found, key))
        return answers


def page_range(keys: ShardKeys, from_ms: int, count: int) -> Command:
    """Return the command that reads the first slices from a time on, with their scores."""
    return ("ZRANGE", keys.slices, from_ms, "+inf", "BYSCORE", "LIMIT", 0, count, "WITHSCORES")


def _portions(items: Sequence[Item], size: int = MAX_ITEMS) -> list[Sequence[Item]]:
    """The items in runs of `size`; one empty run if there are none, so that the version is checked."""
    return [items[first : first + size] for first in range(0, max(len(items), 1), size)]
