"""One real Kafka and one real Redis for all tests here, and DelayTopics with topics and relays of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.records import MakeRoute
from tests.support.route import Route, Servers
from tests.support.routes import making_routes

from delaytopic_api.choices import BackendType
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.redis_server import RedisServer


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
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, backend) as make:
        yield make


@pytest.fixture(scope="module")
def make_shared_route(
    kafka: KafkaServer, redis: RedisServer, backend: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeRoute]:
    """The same for all tests of a file: they look at different sides of one run."""
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path_factory.mktemp("routes"), backend) as make:
        yield make


@pytest.fixture
def route(make_route: MakeRoute) -> Route:
    """A DelayTopic with the usual settings."""
    return make_route()
