"""The broker that `local`, the demo and the tests start: started, killed, stopped and frozen.

One broker for all tests of this file: each leaves it running, with topics of its own. Several tests look at the one
crash and at the one graceful restart.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.harness.fixtures import QUICK_START
from tests.support.relay.process import wait_for

from delaytopic_gateway.client.topics import TopicPlan, admin_client, broker_answers, create_topics, partitions_by_topic
from delaytopic_local.errors import ServerStartError
from delaytopic_local.servers.kafka_server import KafkaServer

PATIENCE_S = 60


class Run(NamedTuple):
    """One run of the broker: where it answered, and as which process."""

    bootstrap_servers: str
    pid: int


class Restart(NamedTuple):
    """An end of the broker, and its next start."""

    before: Run
    ran_meanwhile: bool
    after: Run
    declared_dead: bool
    """The broker of before was declared dead first."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker with the launcher's own settings, which the tests here end and freeze."""
    with KafkaServer(tmp_path_factory.mktemp("kafka"), heap_mib=384, jvm_options=QUICK_START) as server:
        yield server


@pytest.fixture(scope="module")
def crash(server: KafkaServer) -> Restart:
    """The broker is killed with a committed record in the topic `crash`, and started again."""
    create_topics(server.bootstrap_servers, [TopicPlan("crash")])
    produce_in_transaction(server.bootstrap_servers, "crash", b"survivor", commit=True)
    before = run_of(server)
    server.kill()
    return started_again(server, before)


@pytest.fixture(scope="module")
def stop(server: KafkaServer) -> Restart:
    """The broker is stopped gracefully, and started again."""
    before = run_of(server)
    server.stop()
    return started_again(server, before)


def started_again(server: KafkaServer, before: Run) -> Restart:
    fencing_log = server.directory / "fencing.log"
    fencing_log.unlink(missing_ok=True)
    ran_meanwhile = server.is_running()
    server.start()
    return Restart(before, ran_meanwhile, run_of(server), fencing_log.exists())


def run_of(server: KafkaServer) -> Run:
    return Run(server.bootstrap_servers, server.pid)


def produce_in_transaction(bootstrap_servers: str, topic: str, value: bytes, *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": f"test-{topic}"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.flush()
    producer.commit_transaction(PATIENCE_S) if commit else producer.abort_transaction(PATIENCE_S)


def committed_values(bootstrap_servers: str, topic: str, *, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in consumer.consume(count, timeout=PATIENCE_S)]
    consumer.close()
    return values


def test_a_read_committed_reader_sees_committed_transactions_only(server: KafkaServer) -> None:
    create_topics(server.bootstrap_servers, [TopicPlan("transactions")])

    produce_in_transaction(server.bootstrap_servers, "transactions", b"aborted", commit=False)
    produce_in_transaction(server.bootstrap_servers, "transactions", b"committed", commit=True)

    assert committed_values(server.bootstrap_servers, "transactions", count=1) == [b"committed"]


def test_a_crash_ends_the_process(crash: Restart) -> None:
    assert not crash.ran_meanwhile
    assert crash.after.pid != crash.before.pid


def test_records_and_port_survive_a_crash(crash: Restart) -> None:
    assert crash.after.bootstrap_servers == crash.before.bootstrap_servers
    assert committed_values(crash.after.bootstrap_servers, "crash", count=1) == [b"survivor"]


def test_a_crashed_broker_is_declared_dead_before_the_next_one_starts(crash: Restart) -> None:
    assert crash.declared_dead


@pytest.mark.nightly  # each day a broker is restarted so for the epochs of its logs
def test_a_graceful_restart_brings_it_back(stop: Restart) -> None:
    assert not stop.ran_meanwhile
    assert stop.after.pid != stop.before.pid
    assert broker_answers(stop.after.bootstrap_servers, timeout_seconds=PATIENCE_S)


@pytest.mark.nightly
def test_a_broker_that_ended_gracefully_is_not_declared_dead(stop: Restart) -> None:
    assert not stop.declared_dead


def states_of_threads(pid: int) -> list[str]:
    """Return a letter for each thread of a process, as /proc has it."""
    texts = [file.read_text(encoding="ascii") for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return [text.rpartition(") ")[2][0] for text in texts]


def test_a_frozen_broker_answers_again_after_it_was_let_go(server: KafkaServer) -> None:
    server.send_signal(signal.SIGSTOP)
    # The signal is sent at once, and its threads stop one after another.
    wait_for(lambda: all(state == "T" for state in states_of_threads(server.pid)))
    frozen = broker_answers(server.bootstrap_servers, timeout_seconds=0.5)

    server.send_signal(signal.SIGCONT)

    assert not frozen
    assert broker_answers(server.bootstrap_servers, timeout_seconds=PATIENCE_S)


def test_topics_are_not_made_by_asking_for_them(server: KafkaServer) -> None:
    admin = admin_client(server.bootstrap_servers)

    admin.list_topics("misspelt", timeout=PATIENCE_S)

    assert "misspelt" not in partitions_by_topic(admin, server.bootstrap_servers)


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path, settings={"transaction.state.log.num.partitions": "none"}, jvm_options=QUICK_START)

    with pytest.raises(ServerStartError, match=r"transaction\.state\.log\.num\.partitions"):
        server.start()

    assert not server.is_running()
