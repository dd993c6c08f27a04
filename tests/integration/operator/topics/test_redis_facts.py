"""Settings that a Redis reports, and the conditions that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis
from tests.harness.tls_redis import tls_redis
from tests.support.servers.tls import make_certificates

from delaytopic_api.documents import ConditionStatus
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_operator.errors import RedisNotAuthenticated, RedisUnavailable
from delaytopic_operator.redis.check import RedisFacts, read_redis_facts, redis_condition, redis_failure
from delaytopic_operator.redis.client import RedisTarget

MIB = 1 << 20
GOOD = RedisFacts("Redis at a:1", "noeviction", True, "", 10 * MIB, 100 * MIB)


def outcome(*servers: RedisFacts) -> tuple[ConditionStatus, str] | None:
    condition = redis_condition(servers)
    return (condition.status, condition.reason) if condition is not None else None


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (GOOD, None),
        (RedisFacts("Redis at a:1"), None),
        (RedisFacts("Redis at a:1", "noeviction", False, "3600 1", 1, None), None),
        (
            RedisFacts("Redis at a:1", "allkeys-lru", False, "", 99, 100),
            (ConditionStatus.FALSE, "EvictionPolicyUnsafe"),
        ),
        (RedisFacts("Redis at a:1", "noeviction", True, "", 80, 100), (ConditionStatus.TRUE, "MemoryLimitNear")),
        (RedisFacts("Redis at a:1", "noeviction", False, "", 1, 100), (ConditionStatus.TRUE, "PersistenceOff")),
    ],
)
def test_the_gravest_is_told(facts: RedisFacts, expected: tuple[ConditionStatus, str] | None) -> None:
    assert outcome(facts) == expected


def test_one_bad_server_of_a_cluster_is_named() -> None:
    bad = RedisFacts("Redis at b:1", "volatile-ttl", True, "", 1, 100)

    condition = redis_condition([GOOD, bad])

    assert condition is not None
    assert condition.message == (
        "Redis at b:1 has maxmemory-policy volatile-ttl, and would evict pending records; set maxmemory-policy "
        "noeviction"
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RedisUnavailable("away"), (ConditionStatus.UNKNOWN, "RedisUnreachable")),
        (RedisNotAuthenticated("no"), (ConditionStatus.FALSE, "AuthenticationFailed")),
    ],
)
def test_a_redis_that_cannot_be_asked_is_told(
    error: RedisUnavailable | RedisNotAuthenticated, expected: tuple[ConditionStatus, str]
) -> None:
    condition = redis_failure(error)

    assert (condition.status, condition.reason, condition.message) == (*expected, str(error))


def target_of(server: RedisServer, password: str | None = None) -> RedisTarget:
    return RedisTarget("127.0.0.1", server.port, 0, tls=False, password=password)


@pytest.mark.integration
def test_a_server_is_read_as_it_is_set(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis(maxmemory="100mb", maxmemory_policy="allkeys-lru", appendonly="no", save="")

    (facts,) = read_redis_facts(target_of(server))

    assert (facts.where, facts.maxmemory_policy, facts.append_only, facts.snapshots, facts.limit_bytes) == (
        f"Redis at 127.0.0.1:{server.port}",
        "allkeys-lru",
        False,
        "",
        100 * MIB,
    )
    assert facts.used_bytes is not None


@pytest.mark.integration
def test_a_server_that_hides_its_settings_is_not_accused(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    with Redis.from_url(server.url) as client:
        client.execute_command("ACL", "SETUSER", "delay", "on", ">secret", "~*", "+@all", "-config")
    known = target_of(server)
    target = RedisTarget(known.host, known.port, 0, tls=False, username="delay", password="secret")

    (facts,) = read_redis_facts(target)

    assert facts.snapshots is None
    assert redis_condition([facts]) is None


@pytest.mark.integration
def test_a_wrong_password_is_told(start_redis: Callable[..., RedisServer]) -> None:
    server = start_redis()
    with Redis.from_url(server.url) as client:
        client.config_set("requirepass", "right")

    with pytest.raises(RedisNotAuthenticated, match="refuses the credentials"):
        read_redis_facts(target_of(server, "wrong"))
    with pytest.raises(RedisNotAuthenticated, match="refuses the credentials"):
        read_redis_facts(target_of(server))
    assert read_redis_facts(target_of(server, "right"))


@pytest.mark.integration
def test_tls_trusts_what_the_secret_holds_and_nothing_else(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)
    authority, stranger = certificates.authority.read_text(), certificates.client.read_text()
    with tls_redis(tmp_path / "redis", certificates) as server:
        trusting = RedisTarget("127.0.0.1", server.port, 0, tls=True, authorities=f"{stranger}\n{authority}")
        doubting = RedisTarget("127.0.0.1", server.port, 0, tls=True, authorities=stranger)

        assert len(read_redis_facts(trusting)) == 1
        with pytest.raises(RedisUnavailable, match="certificate"):
            read_redis_facts(doubting)
