"""Edge: what a Redis says of itself. What follows from it is in `redis_verdict`."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

import redis
from redis.exceptions import NoPermissionError, ResponseError

from delaytopic_operator.errors import RedisUnavailable
from delaytopic_operator.redis.access import opened, primaries
from delaytopic_operator.redis.credentials import RedisTarget
from delaytopic_operator.redis.verdict import RedisFacts

LONGEST_LOOK_S: Final = 15.0
"""At all servers of a cluster together: it says itself which these are."""


def read_redis_facts(target: RedisTarget) -> list[RedisFacts]:
    """The facts of each server that holds keys, within some seconds.

    Raises `RedisUnavailable` and `RedisNotAuthenticated`.
    """
    ends = monotonic() + LONGEST_LOOK_S
    with opened(target) as client:
        facts = []
        for where, server in primaries(client, target):
            if monotonic() > ends:
                raise RedisUnavailable(f"{target.where} names more servers than answer within {LONGEST_LOOK_S:g} s")
            facts.append(_facts(server, where))
        return facts


def _facts(server: redis.Redis, where: str) -> RedisFacts:
    info = _permitted(server.info) or {}
    policy = info.get("maxmemory_policy")
    append_only = info.get("aof_enabled")
    limit = _whole(info.get("maxmemory"))
    return RedisFacts(
        where,
        maxmemory_policy=str(policy) if policy is not None else _setting(server, "maxmemory-policy"),
        append_only=bool(int(append_only)) if append_only is not None else None,
        snapshots=_setting(server, "save"),
        used_bytes=_whole(info.get("used_memory")),
        limit_bytes=limit or None,
        is_unlimited=limit == 0,
    )


def _setting(server: redis.Redis, name: str) -> str | None:
    """None where it may not be asked: CONFIG is often renamed away in rented servers."""
    found = _permitted(server.config_get, name) or {}
    return found.get(name)


def _permitted(question: Any, *arguments: Any) -> dict[str, Any] | None:
    try:
        answer: dict[str, Any] = question(*arguments)
    except NoPermissionError:
        return None
    except ResponseError as error:
        if str(error).lower().startswith("unknown command"):
            return None
        raise
    return {_text(name): _text(value) for name, value in answer.items()}


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _whole(value: Any) -> int | None:
    return int(value) if value is not None else None
