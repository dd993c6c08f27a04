"""Real servers of a test run, and DelayTopics on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.relay.compiling import IN_C, IN_PYTHON, compile_or_skip
from tests.support.relay.records import REDIS, MakeRoute
from tests.support.relay.route import Route, Servers
from tests.support.relay.routes import making_routes


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> str:
    """RedisZset, unless a mark of `tests.support.relay.records` (`BOTH_BACKENDS` and the like) names others."""
    return str(getattr(request, "param", REDIS))


@pytest.fixture
def speedups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Keep the speedups from relays where a mark of `tests.support.relay.records` says so; return whether they have
    them.
    """
    has_them = bool(getattr(request, "param", True))
    if has_them:
        compile_or_skip()
    for name, value in (IN_C if has_them else IN_PYTHON).items():
        monkeypatch.setenv(name, value)
    return has_them


@pytest.fixture
def make_route(kafka: KafkaAddress, redis: RedisAddress, backend: str, tmp_path: Path) -> Iterator[MakeRoute]:
    """Makes a DelayTopic with topics of its own; stops its relays at the end."""
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path, backend) as make:
        yield make


@pytest.fixture(scope="module")
def make_shared_route(
    kafka: KafkaAddress, redis: RedisAddress, backend: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeRoute]:
    """The same for all tests of a file: they look at different sides of one run."""
    with making_routes(Servers(kafka.bootstrap_servers, redis.url), tmp_path_factory.mktemp("routes"), backend) as make:
        yield make


@pytest.fixture
def route(make_route: MakeRoute) -> Route:
    """A DelayTopic with default settings."""
    return make_route()
