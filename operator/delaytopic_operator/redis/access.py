"""Edge: opening a Redis or a Redis Cluster, and what its client's errors mean to the operator."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry

from delaytopic_operator.errors import OperatorError, RedisNotAuthenticated, RedisUnavailable
from delaytopic_operator.redis.bounds import BoundedPool
from delaytopic_operator.redis.credentials import RedisTarget

TIMEOUT_S: Final = 5.0

Client: TypeAlias = "redis.Redis | RedisCluster"


@contextmanager
def opened(target: RedisTarget, timeout_s: float = TIMEOUT_S) -> Iterator[Client]:
    """A client for as long as it is needed. Raises `RedisUnavailable` and `RedisNotAuthenticated`, also of what is
    done inside.
    """
    options = _options(target, timeout_s)
    kind: type[redis.Connection] = redis.SSLConnection if target.tls else redis.Connection
    client: Client | None = None
    try:
        client = redis.Redis.from_pool(
            BoundedPool(kind, host=target.host, port=target.port, db=target.database, **options)
        )
        if _is_cluster(client):
            client.close()
            # Only from a URL does it take the class of pools.
            host = f"[{target.host}]" if ":" in target.host else target.host
            url = f"redis{'s' if target.tls else ''}://{host}:{target.port}"
            client = RedisCluster(url=url, connection_pool_class=BoundedPool, **options)
        yield client
    except (exceptions.RedisError, exceptions.RedisClusterException) as error:
        raise translate(error, target.where) from error
    except RecursionError as error:
        raise RedisUnavailable(f"{target.where} answers with lists in lists, as no Redis does") from error
    finally:
        if client is not None:
            client.close()


def primaries(client: Client, target: RedisTarget) -> list[tuple[str, redis.Redis]]:
    """The servers that hold keys, each with what sentences call it."""
    if not isinstance(client, RedisCluster):
        return [(target.where, client)]
    return [(f"Redis at {node.name}", client.get_redis_connection(node)) for node in client.get_primaries()]  # type: ignore[no-untyped-call]


def translate(error: exceptions.RedisError | exceptions.RedisClusterException, where: str) -> OperatorError:
    """The operator's error for one of the client's; `where` names the server, never its credentials."""
    text = str(error)
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError):
        return RedisNotAuthenticated(f"{where} refuses the credentials ({text}); check the Secret with its password")
    if isinstance(error, exceptions.NoPermissionError):
        return RedisNotAuthenticated(f"{where} does not permit what the operator needs ({text}); extend its user's ACL")
    return RedisUnavailable(f"{where} is not available: {text}")


def _is_cluster(client: redis.Redis) -> bool:
    """By HELLO, which every user may ask: the field of INFO has another name in Valkey than in Redis."""
    answer = client.execute_command("HELLO")  # type: ignore[no-untyped-call]
    facts = dict(zip(answer[::2], answer[1::2], strict=True))
    return bool(facts.get(b"mode") == b"cluster")


def _options(target: RedisTarget, timeout_s: float) -> dict[str, Any]:
    options: dict[str, Any] = {
        "username": target.username,
        "password": target.password,
        "socket_connect_timeout": timeout_s,
        "socket_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    if target.tls:
        options |= {
            "ssl_ca_data": target.authorities,
            "ssl_min_version": ssl.TLSVersion.TLSv1_2,
        }
    return options
