"""The layout of a shard in Redis: key names and the texts of versions, slices and id entries. Pure.

    {<backend id>:<topic>:<shard>}:position       string  <counter>:<offset>:<owner>
    {<backend id>:<topic>:<shard>}:slices         zset    <start ms>:<width ms> by start ms
    {<backend id>:<topic>:<shard>}:counts         hash    <start ms>:<width ms> -> records put into the slice
    {<backend id>:<topic>:<shard>}:sizes          hash    <start ms>:<width ms> -> bytes of the slice's segments;
                                                          total -> of all slices; position -> as of which write
    {<backend id>:<topic>:<shard>}:s:<start ms>:<width ms>
                                                  list    the slice's segments, in the order they were put
    {<backend id>:<topic>:<shard>}:ids            hash    deliver-id -> <offset>:<until due ms>:<until offset>; of
                                                          what is put off also :<due ms>:<offset of who put it off>
    {<backend id>:<shard>}:topic                  string  <topic> that the shard was last claimed for

`<topic>` is the mark of the source's topic id: what a former topic of its name left is in other keys. Where brokers
tell no id, it is left out, with its colon.
`slices` is the schedule, read page by page in the order of time. `counts` tells of each slice whether all is there that
was put, and how much is due when; `sizes` how much memory they take. The braces are a hash tag: all keys of a shard
share one slot of a Redis Cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.bucket_state import number_of
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.errors import ConfigurationError, CorruptState

NO_VERSION = b""  # how the scripts say that a shard has none
SLICE_BYTES = 550
"""The bytes that Redis takes for a slice beside its segments, about: a key, a list, and a field of three indexes."""
ID_BYTES = 160
"""The bytes that Redis takes for an id of usual length, about."""


class ShardKeys(NamedTuple):
    """The keys of one shard; `lists` is what a slice's name is appended to."""

    version: bytes
    slices: bytes
    counts: bytes
    ids: bytes
    sizes: bytes
    lists: bytes

    @classmethod
    def of(cls, backend_id: str, partition: int, topic_mark: str = "") -> ShardKeys:
        """The keys of a shard of this backend, with records of this topic."""
        tag = f"{{{backend_id}:{topic_mark}{':' if topic_mark else ''}{partition}}}:".encode()
        return cls(tag + b"position", tag + b"slices", tag + b"counts", tag + b"ids", tag + b"sizes", tag + b"s:")

    def list(self, slice_: Slice) -> bytes:
        """The key of a slice's segments."""
        return b"%s%d:%d" % (self.lists, slice_.start_ms, slice_.width_ms)


def topic_key(backend_id: str, partition: int) -> bytes:
    """Return the key that names the topic of a shard, by which a successor knows that it has another."""
    return f"{{{backend_id}:{partition}}}:topic".encode()


def stored_bytes(segment_bytes: int, slices: int, ids: int) -> int:
    """Return how much of Redis' memory so many segments, slices and ids take, about."""
    return segment_bytes + slices * SLICE_BYTES + ids * ID_BYTES


def check_backend_id(backend_id: str) -> str:
    """The id, if it may begin a key. Raises `ConfigurationError`."""
    if not backend_id or "{" in backend_id or "}" in backend_id:
        raise ConfigurationError(
            f"backend.id is {backend_id!r}: it begins every key in Redis, so it must not be empty or contain braces"
        )
    return backend_id


def encode_version(version: StoreVersion | None) -> bytes:
    """The text of a version; the owner comes last because it may contain anything."""
    if version is None:
        return NO_VERSION
    return f"{version.counter}:{version.offset}:{version.owner}".encode()


def decode_version(text: bytes | None, key: bytes) -> StoreVersion | None:
    """The version that `key` holds. Raises `CorruptState`."""
    if not text:
        return None
    try:
        counter, offset, owner = text.decode().split(":", 2)
        return StoreVersion(owner, number_of(counter, 0), number_of(offset, 0))
    except ValueError:
        raise _not_ours(key, text) from None


def decode_slice(name: bytes, key: bytes) -> Slice:
    """The slice that a field of the hash `key` names. Raises `CorruptState`."""
    try:
        start_ms, width_ms = name.split(b":")
        return Slice(number_of(start_ms), number_of(width_ms, 0))
    except ValueError:
        raise _not_ours(key, name) from None


def decode_page(scored: Sequence[bytes], key: bytes) -> list[Slice]:
    """Return the slices that a range of the sorted set `key` names, each followed by its score.

    Raises `CorruptState`, also for a slice that does not lie at its start: it would be loaded too late.
    """
    slices = [decode_slice(name, key) for name in scored[::2]]
    for slice_, score in zip(slices, scored[1::2], strict=True):
        if float(score) != slice_.start_ms:
            raise _not_ours(key, b"%d:%d at %s" % (*slice_, score))
    return slices


def decode_count(text: bytes | None, key: bytes) -> int:
    """Return how many records a field of the hash `key` counts. Raises `CorruptState`."""
    try:
        return number_of(text or b"", 0)
    except ValueError:
        raise _not_ours(key, text or b"nothing") from None


def encode_id_entry(entry: IdEntry) -> bytes:
    """The text of an id's entry."""
    return entry.encode()


def decode_id_entry(text: bytes | None, key: bytes) -> IdEntry | None:
    """The entry that a field of the hash `key` holds. Raises `CorruptState`."""
    if text is None:
        return None
    try:
        return IdEntry.decode(text)
    except ValueError:
        raise _not_ours(key, text) from None


def _not_ours(key: bytes, text: bytes) -> CorruptState:
    return CorruptState(
        f"the Redis key {key.decode()} holds {text[:80]!r}, which no relay writes: delete the keys that begin with "
        f"{key.decode().partition('}')[0]}}}; the relay then fills the backlog again from the source topic"
    )
