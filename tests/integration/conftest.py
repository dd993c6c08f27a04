"""One real Kafka and one real Redis for all tests here, and DelayTopics with topics and relays of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.records import MakeRoute
from tests.support.route import Route, Servers

from delaytopic_api.choices import BackendType
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer

_numbers = count(1)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """It creates topics that anybody asks for, which is what Kafka does unless told otherwise."""
    settings = {"auto.create.topics.enable": "true"}
    with KafkaServer(tmp_path_factory.mktemp("kafka"), settings=settings) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session", params=[str(backend) for backend in BackendType])
def backend(request: pytest.FixtureRequest) -> str:
    """Each promise is kept with every backend; a test about one of them says so by `records.ONLY_REDIS`."""
    return str(request.param)


@pytest.fixture
def make_route(kafka: KafkaServer, redis: RedisServer, backend: str, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes a DelayTopic with topics of its own; stops its relays at the end."""
    with _routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, backend) as make:
        yield make


@pytest.fixture(scope="module")
def make_shared_route(
    kafka: KafkaServer, redis: RedisServer, backend: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeRoute]:
    """The same for all tests of a file: they look at different sides of one run."""
    with _routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path_factory.mktemp("routes"), backend) as make:
        yield make


@pytest.fixture
def route(make_route: MakeRoute) -> Route:
    """A DelayTopic with the usual settings."""
    return make_route()


@contextmanager
def _routes(servers: Servers, directory: Path, backend: str) -> Iterator[MakeRoute]:
    routes: list[Route] = []

    def make(source_settings: dict[str, str] | None = None, **spec: Any) -> Route:
        spec["backend"] = {"type": backend, **spec.get("backend", {})}
        routes.append(Route(servers, directory, f"route-{next(_numbers)}", spec))
        return routes[-1].create_topics(**(source_settings or {}))

    yield make
    for route in routes:
        route.stop_relays()
