"""The checks of a Redis that is to hold a backlog: made at start, over plain facts, with one thin reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import redis
from redis.cluster import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError

from delaytopic_relay.backlog.redis.connection import RedisConnection
from delaytopic_relay.backlog.redis.errors import ask
from delaytopic_relay.errors import ConfigurationError

OLDEST_VERSION = (6, 2)
SMALLEST_REWRITE_BYTES = 10**9


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """The facts that one server tells of itself; None where it does not permit the question."""

    where: str
    version: str | None
    maxmemory_policy: str | None
    append_only: bool | None
    snapshots: str | None
    rewrite_min_bytes: int | None


def check_redis(connection: RedisConnection) -> list[str]:
    """Check every primary; answers warnings for the log.

    Raises `ConfigurationError` for a server that would lose records or is too old, `BacklogUnavailable`.
    """
    nodes = ask(connection.where, lambda: _nodes(connection))
    return [warning for where, node in nodes for warning in check_facts(read_facts(node, where))]


def free_bytes(connection: RedisConnection) -> int | None:
    """Return how much of maxmemory is left, on the fullest primary; None without maxmemory, or if it may not be asked.

    Raises `BacklogUnavailable`.
    """
    nodes = connection.ask(lambda: _nodes(connection))
    left = [free_of(_permitted(where, partial(node.info, "memory"))) for where, node in nodes]
    return min((free for free in left if free is not None), default=None)


def free_of(memory: Mapping[str, Any] | None) -> int | None:
    """Return what is left according to the section `memory` of INFO; nothing is less than 0."""
    if not memory or not memory.get("maxmemory"):
        return None
    return max(0, int(memory["maxmemory"]) - int(memory.get("used_memory", 0)))


def check_facts(facts: RedisFacts) -> list[str]:
    """Warnings about a server. Raises `ConfigurationError` if it must not be used."""
    _check_version(facts)
    if facts.maxmemory_policy not in (None, "noeviction"):
        raise ConfigurationError(
            f"{facts.where} has maxmemory-policy {facts.maxmemory_policy}: set maxmemory-policy noeviction, "
            "an evicting Redis would lose pending records"
        )
    return [warning for warning in (_unread(facts), _persistence(facts), _rewrites(facts)) if warning]


def read_facts(node: redis.Redis, where: str) -> RedisFacts:
    """Ask one server. Raises `ConfigurationError` and `BacklogUnavailable`, but not for questions it forbids."""
    info = _permitted(where, node.info) or {}
    version = info.get("redis_version")
    policy = info.get("maxmemory_policy")
    append_only = info.get("aof_enabled")
    save, rewrite = _setting(node, where, "save"), _setting(node, where, "auto-aof-rewrite-min-size")
    return RedisFacts(
        where,
        version=str(version) if version is not None else None,
        maxmemory_policy=str(policy) if policy is not None else _setting(node, where, "maxmemory-policy"),
        append_only=bool(int(append_only)) if append_only is not None else None,
        snapshots=save,
        rewrite_min_bytes=int(rewrite) if rewrite is not None else None,
    )


def _check_version(facts: RedisFacts) -> None:
    numbers = tuple(int(number) for number in re.findall(r"\d+", facts.version or "")[:2])
    if numbers and numbers < OLDEST_VERSION:
        raise ConfigurationError(f"{facts.where} is Redis {facts.version}: the backlog needs 6.2 or newer, or Valkey")


def _unread(facts: RedisFacts) -> str | None:
    questions = {
        "its version (INFO)": facts.version,
        "maxmemory-policy, which must be noeviction": facts.maxmemory_policy,
        "save": facts.snapshots,
        "auto-aof-rewrite-min-size": facts.rewrite_min_bytes,
    }
    unread = [question for question, answer in questions.items() if answer is None]
    if not unread:
        return None
    return f"{facts.where} does not permit to read {', '.join(unread)}: check by hand what its operator set"


def _persistence(facts: RedisFacts) -> str | None:
    if facts.append_only is not False or facts.snapshots != "":
        return None
    return (
        f"{facts.where} has no persistence (neither AOF nor RDB): after a restart of it, the relay reads all pending "
        "records again from the source topic; set appendonly yes"
    )


def _rewrites(facts: RedisFacts) -> str | None:
    small = facts.rewrite_min_bytes is not None and facts.rewrite_min_bytes < SMALLEST_REWRITE_BYTES
    if not facts.append_only or not small:
        return None
    return (
        f"{facts.where} rewrites its AOF from {facts.rewrite_min_bytes} bytes on, under load every few seconds, "
        "which delays deliveries; set auto-aof-rewrite-min-size 1gb"
    )


def _nodes(connection: RedisConnection) -> Sequence[tuple[str, redis.Redis]]:
    client = connection.client
    if isinstance(client, RedisCluster):
        return [(f"Redis at {node.name}", client.get_redis_connection(node)) for node in client.get_primaries()]  # type: ignore[no-untyped-call]
    return [(connection.where, client)]


def _setting(node: redis.Redis, where: str, name: str) -> str | None:
    settings = _permitted(where, lambda: node.config_get(name)) or {}
    value = settings.get(name)
    return str(value) if value is not None else None


def _permitted(where: str, question: Callable[[], Any]) -> Any:
    """The answer, or None if the server has no such command or forbids it, as managed ones do with CONFIG."""

    def unless_forbidden() -> Any:
        try:
            return question()
        except NoPermissionError:
            return None
        except ResponseError as error:
            if str(error).startswith("unknown"):
                return None
            raise

    return ask(where, unless_forbidden)
