"""The simulated Redis: the few commands and the two scripts that `RedisBacklogStore` uses, and a client for them.

The production `RedisBacklogStore` runs on it unchanged. That the scripts are modelled truly is checked against a real
server, see `test_simulated_redis`.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from redis.exceptions import NoScriptError, OutOfMemoryError, ReadOnlyError
from tests.simulation.world.store_client import Line

from delaytopic_relay.backlog.redis.connection import Client, RedisConnection
from delaytopic_relay.backlog.redis.store import RedisBacklogStore, Script

Keys = dict[bytes, Any]
Answer = TypeVar("Answer")
PUT, DROP = Script.read("put.lua"), Script.read("drop.lua")


class RedisServer:
    """A store of strings, hashes and lists; a sorted set is kept as a hash of scores."""

    def __init__(self) -> None:
        self.keys: Keys = {}
        self.is_full = False
        """True if it has reached maxmemory: a script whose first write may take memory is refused."""
        self.former: list[Keys] = []
        """The keys of the servers that were the primary before, in their order."""
        self._scripts: set[str] = set()
        self._known: dict[str, Callable[[list[bytes], list[bytes]], list[Any]]] = {
            PUT.digest: self._put,
            DROP.digest: self._drop,
        }

    def evalsha(self, digest: str, keys: list[bytes], arguments: list[bytes]) -> list[Any]:
        if digest not in self._scripts:
            raise NoScriptError("NOSCRIPT No matching script.")
        return self._known[digest](keys, arguments)

    def eval(self, text: str, keys: list[bytes], arguments: list[bytes]) -> list[Any]:
        digest = PUT.digest if text == PUT.text else DROP.digest
        self._scripts.add(digest)
        return self._known[digest](keys, arguments)

    def command(self, connected: int, name: str, key: bytes, *arguments: Any) -> Any:
        """A reading command, over a connection to the primary of so many demotions ago.

        One that is a replica by now answers as well, from what it had then.
        """
        found = [*self.former, self.keys][connected].get(key)
        if name == "GET":
            return found
        if name == "LRANGE":
            first, last = arguments
            return list(found[first : last + 1]) if found else []
        if name == "HMGET":
            return [(found or {}).get(field) for field in arguments]
        if name in ("ZCARD", "HLEN"):
            return len(found or {})
        if name == "HKEYS":
            return list(found or {})
        if name == "HSCAN":
            return 0, dict(found or {})
        assert name == "ZRANGE", name
        return _range(found or {}, *arguments)

    def _state(self, position: bytes, keys: list[bytes]) -> list[Any]:
        total = int(self.keys.get(keys[4], {}).get(b"total", 0))
        return [position, total, len(self.keys.get(keys[2], ())), len(self.keys.get(keys[3], ()))]

    def _put(self, keys: list[bytes], arguments: list[bytes]) -> list[Any]:
        """See put.lua."""
        position, slices, counts, ids, sizes, *lists = keys
        before, after, name_at, *rest = arguments
        found: bytes = self.keys.get(position, b"")
        if found != before or found == after:
            return self._state(found, keys)
        if lists and self.is_full:
            raise OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.", status_code="OOM")
        if self.keys.get(sizes, {}).get(b"position") != before:
            self.keys.pop(sizes, None)
        sized = self.keys.setdefault(sizes, {})
        sized[b"position"] = after
        sized.setdefault(b"total", 0)
        for list_ in lists:
            name, records, data, rest = list_[int(name_at) - 1 :], int(rest[0]), rest[1], rest[2:]
            self.keys.setdefault(list_, []).append(data)
            hash_ = self.keys.setdefault(counts, {})
            hash_[name] = b"%d" % (int(hash_.get(name, 0)) + records)
            for field in (name, b"total"):
                sized[field] = sized.get(field, 0) + len(data)
            if int(hash_[name]) == records:
                start = re.match(rb"-?\d+", name)
                assert start is not None
                self.keys.setdefault(slices, {})[name] = float(start.group())
        if rest:
            self.keys.setdefault(ids, {}).update(zip(rest[::2], rest[1::2], strict=True))
        self.keys[position] = after
        return self._state(after, keys)

    def _drop(self, keys: list[bytes], arguments: list[bytes]) -> list[Any]:
        """See drop.lua."""
        position, slices, counts, ids, sizes, *lists = keys
        before, name_at, *names = arguments
        found: bytes = self.keys.get(position, b"")
        if found != before:
            return self._state(found, keys)
        sized = self.keys.get(sizes, {})
        fields = [list_[int(name_at) - 1 :] for list_ in lists]
        for field in fields:
            sized[b"total"] = sized.get(b"total", 0) - sized.pop(field, 0)
        for key, gone in ((ids, names), (slices, fields), (counts, fields)):
            for field in gone:
                self.keys.get(key, {}).pop(field, None)
        for list_ in lists:
            self.keys.pop(list_, None)
        for key in (ids, slices, counts):
            if not self.keys.get(key, True):
                del self.keys[key]
        return self._state(found, keys)

    def restart(self) -> None:
        """The script cache is lost."""
        self._scripts.clear()

    def snapshot(self) -> Keys:
        """Return what is stored now, for `restore`."""
        return copy.deepcopy(self.keys)

    def restore(self, snapshot: Keys) -> None:
        """Roll back, as a failover to a replica does that missed the last writes."""
        self.keys = copy.deepcopy(snapshot)
        self.restart()

    def lists(self) -> list[list[bytes]]:
        """Return those of segments, to be looked at and changed."""
        return [found for _, found in sorted(self.keys.items()) if isinstance(found, list)]

    def demote(self) -> None:
        """Another server is the primary from now on, and has the same; connections to the former one stay open."""
        self.former.append(copy.deepcopy(self.keys))
        self.restart()

    def wipe(self) -> None:
        """Lose everything."""
        self.keys = {}
        self.restart()


class RedisClient:
    """The part of the client library that `RedisBacklogStore` uses; every command is an effect."""

    def __init__(self, server: RedisServer, line: Line) -> None:
        self._server = server
        self._line = line
        self.connection_pool = self
        self.disconnect(inuse_connections=False)

    def disconnect(self, *, inuse_connections: bool) -> None:
        """The next command goes to whoever is the primary then."""
        assert not inuse_connections
        self._connected: int | None = None

    def _reach(self) -> int:
        if self._connected is None:
            self._connected = len(self._server.former)
        return self._connected

    def _write(self, effect: str, act: Callable[[], Answer]) -> Answer:
        def there() -> Answer:
            if self._reach() < len(self._server.former):
                raise ReadOnlyError("You can't write against a read only replica.", status_code="READONLY")
            return act()

        return self._line.call(effect, there)

    def read(self, effect: str, command: tuple[Any, ...]) -> Any:
        """A reading command."""
        return self._line.call(effect, lambda: self._server.command(self._reach(), *command))

    def evalsha(self, digest: str, count: int, *arguments: bytes | int) -> list[Any]:
        keys, rest = _split(count, arguments)
        effect = "put" if digest == PUT.digest else "drop"
        return self._write(effect, lambda: self._server.evalsha(digest, keys, rest))

    def eval(self, text: str, count: int, *arguments: bytes | int) -> list[Any]:
        keys, rest = _split(count, arguments)
        effect = "put" if text == PUT.text else "drop"
        return self._write(effect, lambda: self._server.eval(text, keys, rest))

    def get(self, key: bytes) -> Any:
        return self.read("topic" if key.endswith(b":topic") else "position", ("GET", key))

    def set(self, key: bytes, value: bytes) -> None:
        self._line.call("topic", lambda: self._server.keys.update({key: value}))

    def execute_command(self, name: str, *arguments: Any) -> Any:
        return self.read("slices", (name, *arguments))

    def hscan(self, key: bytes, cursor: int, *, count: int) -> Any:
        return self.read("ids", ("HSCAN", key, cursor, count))

    def unlink(self, *keys: bytes) -> None:
        def forget() -> None:
            for key in keys:
                self._server.keys.pop(key, None)

        self._write("drop", forget)

    def pipeline(self, *, transaction: bool) -> RedisPipeline:
        assert not transaction
        return RedisPipeline(self)

    def close(self) -> None:
        """Nothing to give back."""


class RedisPipeline:
    """Commands that go together, but with others' commands in between."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._commands: list[tuple[Any, ...]] = []

    def __enter__(self) -> RedisPipeline:
        return self

    def __exit__(self, *exception: object) -> None:
        self._commands.clear()

    def execute_command(self, *command: Any) -> None:
        self._commands.append(command)

    def execute(self) -> list[Any]:
        effects = {"LRANGE": "load", "HMGET": "ids", "GET": "check"}
        return [self._client.read(effects.get(command[0], "slices"), command) for command in self._commands]


def _range(scores: dict[bytes, float], first: int, *arguments: Any) -> list[bytes]:
    """Answer ZRANGE by index for all members, or by score with a limit and with scores."""
    members = sorted(scores, key=lambda member: (scores[member], member))
    if "BYSCORE" not in arguments:
        return members
    found = [member for member in members if scores[member] >= first][: arguments[4]]
    return [text for member in found for text in (member, b"%d" % scores[member])]


def _split(count: int, arguments: tuple[bytes | int, ...]) -> tuple[list[bytes], list[bytes]]:
    """Keys and arguments, as the server gets them."""
    sent = [argument if isinstance(argument, bytes) else b"%d" % argument for argument in arguments]
    return sent[:count], sent[count:]


def redis_store(server: RedisServer, line: Line, topic_mark: str) -> RedisBacklogStore:
    """The production backlog over the simulated server."""
    client = cast(Client, RedisClient(server, line))
    return RedisBacklogStore(RedisConnection(client, "redis"), "shop.reminders", topic_mark)
