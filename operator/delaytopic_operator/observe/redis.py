"""Edge: whether the Redis of a DelayTopic is fit to hold schedules; asked now and then, since nothing waits for it."""

from __future__ import annotations

from typing import Final

from delaytopic_api.documents import RedisConnection
from delaytopic_api.values import BackendType
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kafka.ttl_cache import TTLCache
from delaytopic_operator.model.conditions import Condition
from delaytopic_operator.model.secret_values import SecretValues
from delaytopic_operator.redis.check import read_redis_facts, redis_condition, redis_failure
from delaytopic_operator.redis.client import RedisTarget, redis_target
from delaytopic_operator.rules.validate import Accepted

AGE_MS: Final = 15_000


class RedisObserver:
    """Thread-safe; one question for all DelayTopics of a Redis."""

    def __init__(self) -> None:
        self._conditions: TTLCache[RedisTarget, Condition | None] = TTLCache(_condition, AGE_MS)

    def observe(self, accepted: Accepted, secrets: SecretValues, now_ms: int) -> Condition | None:
        """Return what is the matter with Redis; None: nothing, or schedules wait elsewhere."""
        redis = accepted.settings.backend.redis
        if accepted.settings.backend.type is not BackendType.REDIS_ZSET or redis is None:
            return None
        return self.ask(redis, secrets, now_ms)

    def ask(self, redis: RedisConnection, secrets: SecretValues, now_ms: int) -> Condition | None:
        """Return what is the matter with this Redis; None: nothing."""
        try:
            return self._conditions.get(redis_target(redis, secrets), now_ms)
        except OperatorError as error:
            return redis_failure(error)


def _condition(target: RedisTarget) -> Condition | None:
    """Check one Redis. A failure is an answer, too: one that is away is not asked by a thousand reconciliations."""
    try:
        return redis_condition(read_redis_facts(target))
    except OperatorError as error:
        return redis_failure(error)
