"""The servers of a run as fixtures, for every test; `tests.harness.shared_servers` says who starts them.

- `kafka`, `redis`: shared; take names from `tests.harness.names.unique`.
- `control_plane`: shared, with the project's CRDs; take namespaces from `make_namespace`.
- `own_kafka`, `own_redis`: one for this test alone, to be stopped, killed, wiped and misconfigured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import pytest
from images.tools import binaries
from images.tools.binaries import Programs
from images.tools.go_builds import ProgramsMissingError
from playground.kube.control_plane import ControlPlane
from tests.harness.shared_servers import SharedKafka, SharedRedis, ask_for

from delaytopic_local.servers.kafka_server import KafkaServer
from delaytopic_local.servers.redis_server import RedisServer

Built = TypeVar("Built")
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""For a JVM that lives for a test: what it would spend on optimising itself never comes back."""
QUICK_SESSIONS = {"group.min.session.timeout.ms": "1000"}


@pytest.fixture(scope="session")
def kafka() -> SharedKafka:
    found: SharedKafka = ask_for("kafka")
    return found


@pytest.fixture(scope="session")
def redis() -> SharedRedis:
    found: SharedRedis = ask_for("redis")
    return found


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[KafkaServer]:
    server = KafkaServer(tmp_path / "own-kafka", settings=QUICK_SESSIONS, heap_mib=384, jvm_options=QUICK_START)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "own-redis")
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="session")
def kubernetes_programs() -> Programs:
    return prepared(binaries.kubernetes_programs)


@pytest.fixture(scope="session")
def control_plane(kubernetes_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    shared = ask_for("control-plane")
    return ControlPlane(kubernetes_programs, shared.directory, tmp_path_factory.mktemp("control-plane"))


def prepared(find: Callable[..., Built], **wanted: Any) -> Built:
    """Return what `make prepare` built; the test is skipped, in CI failed, where it did not."""
    try:
        return find(build=False, **wanted)
    except ProgramsMissingError as missing:
        _give_up(f"NOT TESTED: {missing}")


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
