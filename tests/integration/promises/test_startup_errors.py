"""A relay that cannot start says why in one line, and ends if only a person can help, or else waits."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress, RedisAddress
from tests.support.relay.ends import exit_code, last_words, lines_of, page, wait_until_it_waits
from tests.support.relay.process import RelayProcess
from tests.support.relay.records import MakeRoute, Sent, produce
from tests.support.relay.route import LOG_APPEND_TIME, PARTITIONS, Route, Servers

from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_local.servers.process import free_port
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_relay.errors import ConfigurationError
from delaytopic_relay.service import read_relay_config

pytestmark = pytest.mark.integration

MISCONFIGURED = 2
REPEATED_AFTER = timedelta(seconds=9)
LONG_AGO = datetime.fromtimestamp(0, UTC)
SECRET = "hunter2-never-to-be-seen"
Edit = Callable[[dict[str, Any]], None]


# -- a document that is wrong


def put(path: str, value: object) -> Edit:
    """Sets one field of the configuration document."""

    def edit(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            document = document.setdefault(name, {})
        document[last] = value

    return edit


def drop(path: str) -> Edit:
    """Takes one field out of the configuration document."""

    def edit(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for name in parents:
            document = document[name]
        del document[last]

    return edit


WRONG_FIELDS: dict[str, Edit] = {
    "target.partition": put("target.partition", "ByKey"),
    "source.topic": drop("source.topic"),
    "precision": put("precision", "fast"),
    "guarantee": put("guarantee", "ExactlyTwice"),
    "limits.memory": put("limits.memory", "lots"),
    "deadLetter.topic": put("deadLetter.topic", "no topic/name"),
    "schedule.cesium.numbers": put("schedule.cesium.numbers", "Unheard"),
}
SECRETS_IN_IT: dict[str, Edit] = {
    "kafka.security.password": put("kafka.security.password", SECRET),
    "backend.redis.url": put("backend.redis.url", f"redis://:{SECRET}@127.0.0.1:6379/0"),
}


def document_of(directory: Path) -> dict[str, Any]:
    """One that is right, for servers that are not there."""
    document: dict[str, Any] = (
        Route(Servers("127.0.0.1:1", "redis://127.0.0.1:1/0"), directory, "wrong").config().to_document()
    )
    return document


def test_a_configuration_with_wrong_fields_is_refused_by_the_path_of_each(tmp_path: Path) -> None:
    document = document_of(tmp_path)
    for edit in WRONG_FIELDS.values():
        edit(document)

    relay = RelayProcess(written(tmp_path, yaml.safe_dump(document))).start()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert str(relay.config) in words
    assert [path for path in WRONG_FIELDS if path not in words] == []


@pytest.mark.parametrize("path", SECRETS_IN_IT)
def test_a_secret_in_the_configuration_is_refused_and_not_repeated(tmp_path: Path, path: str) -> None:
    document = document_of(tmp_path)
    SECRETS_IN_IT[path](document)

    words = refusal(tmp_path, yaml.safe_dump(document))

    assert path in words
    assert SECRET not in words


@pytest.mark.parametrize("text", ["", "name: [unclosed"])
def test_a_configuration_that_is_no_document_is_refused(tmp_path: Path, text: str) -> None:
    assert str(tmp_path / "relay.yaml") in refusal(tmp_path, text)


def refusal(directory: Path, text: str) -> str:
    """Return what is said of a configuration."""
    with pytest.raises(ConfigurationError) as refused:
        read_relay_config(written(directory, text))
    return str(refused.value)


def written(directory: Path, text: str) -> Path:
    file = directory / "relay.yaml"
    file.write_text(text, encoding="utf-8")
    return file


# -- surroundings that only a person can put right


def test_a_fixed_delay_on_a_source_with_the_producers_times_is_refused(make_route: MakeRoute) -> None:
    route = make_route(schedule={"fixedDelay": "2s"})

    relay = route.start_relay()

    assert exit_code(relay) == MISCONFIGURED
    words = last_words(relay)
    assert route.source in words
    assert "CreateTime" in words
    assert "LogAppendTime" in words


def test_same_partition_into_fewer_partitions_is_refused(make_route: MakeRoute) -> None:
    route = make_route(target={"partitioning": "SamePartition"})
    create_topics(route.servers.bootstrap_servers, [TopicPlan(route.source, PARTITIONS + 1)])

    relay = route.start_relay()

    assert exit_code(relay) == MISCONFIGURED
    assert f"{route.target} has {PARTITIONS}, {route.source} {PARTITIONS + 1}" in last_words(relay)


def test_pages_on_a_port_that_is_taken_are_refused(make_route: MakeRoute) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        relay = make_route(http={"port": port}).start_relay()

        assert exit_code(relay) == MISCONFIGURED
    assert f"port {port}" in last_words(relay)


# -- surroundings that may come right by themselves


@pytest.fixture
def late_route(kafka: KafkaAddress, redis: RedisAddress, tmp_path: Path) -> Iterator[Route]:
    """A DelayTopic without its topics, which the relay's asking for them must not create."""
    route = Route(Servers(kafka.bootstrap_servers, redis.url), tmp_path, unique("late-topics"))
    yield route
    route.stop_relays()


def test_a_relay_waits_for_its_topics_says_so_and_starts_when_they_are_there(late_route: Route) -> None:
    route, servers = late_route, late_route.servers.bootstrap_servers
    relay = route.start_relay()

    wait_until_it_waits(relay, f"source.topic: the topic {route.source} does not exist")
    create_topics(servers, [TopicPlan(route.source, PARTITIONS)])
    wait_until_it_waits(relay, f"target.topic: the topic {route.target} does not exist")
    create_topics(servers, [TopicPlan(route.target, PARTITIONS, LOG_APPEND_TIME)])
    wait_until_it_waits(relay, f"deadLetter.topic: the topic {route.dead_letter} does not exist")
    assert page(relay, "/healthz")[0] == 200
    assert relay.status()["state"] == "Starting"
    route.create_topics()

    relay.wait_until_delivering(PARTITIONS)
    produce(servers, route.source, [Sent(b"k", b"v")])
    assert route.settled_verdict().delivered == 1
    assert page(relay, "/readyz") == (200, "running\n")
    assert [cause.partition(":")[0] for cause in causes_of_waiting(relay)] == [
        "source.topic",
        "target.topic",
        "deadLetter.topic",
    ]


def test_a_relay_waits_for_redis_says_so_and_starts_when_it_is_there(make_route: MakeRoute, tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "late-redis", port=free_port())
    route = make_route(backend={"redis": {"url": redis.url}})
    relay = route.start_relay()

    answer = wait_until_it_waits(relay, f"127.0.0.1:{redis.port}")
    with redis:
        relay.wait_until_delivering(PARTITIONS)
        relay.terminate()

    assert "Redis" in answer
    assert len(causes_of_waiting(relay)) == 1


@pytest.mark.takes_long("a relay asks Kafka for ten seconds before it says that it waits")
def test_a_relay_waits_for_kafka_says_so_and_can_be_told_to_stop(make_route: MakeRoute) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    relay = make_route(kafka={"bootstrapServers": nobody}).start_relay()

    answer = wait_until_it_waits(relay, "kafka.bootstrapServers")

    assert "Kafka does not answer" in answer
    assert page(relay, "/healthz")[0] == 200
    assert len(causes_of_waiting(relay)) == 1
    assert relay.terminate() == 0
    assert relay.log_lines()[-1]["event"] == "stopped"


def test_a_secret_that_came_from_a_file_is_not_in_the_log(make_route: MakeRoute, tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{free_port()}"
    (tmp_path / "url").write_text(f"redis://user:{SECRET}@{nobody}/0\n")
    relay = make_route(backend={"redis": {"url": None, "urlFile": str(tmp_path / "url")}}).start_relay()

    answer = wait_until_it_waits(relay, nobody)

    assert SECRET not in answer
    assert SECRET not in relay.log_file.read_text()


def causes_of_waiting(relay: RelayProcess) -> list[str]:
    """Return the reasons in its log, in order; asserts that none is repeated before ten seconds are over."""
    logged: dict[str, datetime] = {}
    for line in lines_of(relay, "warning"):
        if line["event"] == "waiting":
            moment = datetime.fromisoformat(line["timestamp"])
            assert moment - logged.get(line["reason"], LONG_AGO) > REPEATED_AFTER, line
            logged[line["reason"]] = moment
    return list(logged)
