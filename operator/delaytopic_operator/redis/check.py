"""Edge: what a Redis says of itself, and the condition that follows: is it fit to hold schedules?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import redis
from redis.exceptions import NoPermissionError, ResponseError

from delaytopic_api.documents import ConditionStatus, ConditionType
from delaytopic_operator.errors import NotAllowed, OperatorError, RedisUnavailable
from delaytopic_operator.model.conditions import FALSE, TRUE, UNKNOWN, Condition
from delaytopic_operator.redis.client import RedisTarget, opened, primaries

LONGEST_LOOK_S: Final = 15.0
"""The time for all servers of a cluster together: it says itself which these are."""
NEAR_PERCENT: Final = 80
"""Above this share of maxmemory it is time to do something: when it is full, relays take nothing in."""


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


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """The facts that one server tells of itself; None where it does not permit the question."""

    where: str
    maxmemory_policy: str | None = None
    append_only: bool | None = None
    snapshots: str | None = None
    """The setting `save`; empty: none are made."""
    used_bytes: int | None = None
    limit_bytes: int | None = None
    """maxmemory; None also where there is none."""


def redis_condition(servers: Iterable[RedisFacts]) -> Condition | None:
    """BackendReady, if there is something to say: the gravest rule that a server breaks. None: all is well."""
    facts = list(servers)
    for rule in (_eviction, _memory, _persistence):
        said = [condition for condition in map(rule, facts) if condition is not None]
        if said:
            message = "; ".join(condition.message for condition in said)
            return said[0]._replace(message=message)
    return None


def redis_failure(error: OperatorError) -> Condition:
    """BackendReady when Redis cannot be asked; where it does not answer, relays may still reach it."""
    return _backend(FALSE if isinstance(error, NotAllowed) else UNKNOWN, error.reason, str(error))


def _eviction(facts: RedisFacts) -> Condition | None:
    if facts.maxmemory_policy in (None, "noeviction"):
        return None
    message = (
        f"{facts.where} has maxmemory-policy {facts.maxmemory_policy}, and would evict pending records; set "
        "maxmemory-policy noeviction"
    )
    return _backend(FALSE, "EvictionPolicyUnsafe", message)


def _memory(facts: RedisFacts) -> Condition | None:
    used, limit = facts.used_bytes, facts.limit_bytes
    if used is None or limit is None or used * 100 < limit * NEAR_PERCENT:
        return None
    message = (
        f"{facts.where} uses {used * 100 // limit} % of maxmemory ({limit >> 20} MiB): when it is full, nothing more "
        "is taken in, and records wait in the source topic; raise maxmemory"
    )
    return _backend(TRUE, "MemoryLimitNear", message)


def _persistence(facts: RedisFacts) -> Condition | None:
    if facts.append_only is not False or facts.snapshots != "":
        return None
    message = (
        f"{facts.where} has no persistence: after a restart, relays read everything pending again from the source "
        "topic; set appendonly yes"
    )
    return _backend(TRUE, "PersistenceOff", message)


def _backend(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(ConditionType.BACKEND_READY, status, reason, message)
