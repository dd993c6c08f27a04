from __future__ import annotations

import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from delaytopic_cli.embedded.kafka_client import admin_client, broker_answers
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.topics import TopicPlan, create_topics, delete_topics, partitions_by_topic
from delaytopic_cli.errors import KafkaUnreachableError, ServerStartError, TopicError


def produce_in_transaction(bootstrap_servers: str, topic: str, value: bytes, *, commit: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": f"test-{topic}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.flush()
    producer.commit_transaction(30) if commit else producer.abort_transaction(30)


def committed_values(bootstrap_servers: str, topic: str, *, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "reader", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in consumer.consume(count, timeout=30)]
    consumer.close()
    return values


def test_a_read_committed_reader_sees_committed_transactions_only(kafka: KafkaServer) -> None:
    create_topics(kafka.bootstrap_servers, [TopicPlan("transactions")])

    produce_in_transaction(kafka.bootstrap_servers, "transactions", b"aborted", commit=False)
    produce_in_transaction(kafka.bootstrap_servers, "transactions", b"committed", commit=True)

    assert committed_values(kafka.bootstrap_servers, "transactions", count=1) == [b"committed"]


def test_records_and_port_survive_a_crash(kafka: KafkaServer) -> None:
    create_topics(kafka.bootstrap_servers, [TopicPlan("crash")])
    produce_in_transaction(kafka.bootstrap_servers, "crash", b"survivor", commit=True)
    address = kafka.bootstrap_servers

    kafka.kill()
    assert not kafka.is_running()
    kafka.start()

    assert kafka.bootstrap_servers == address
    assert committed_values(address, "crash", count=1) == [b"survivor"]


def test_a_crashed_broker_is_declared_dead_before_the_next_one_starts(kafka: KafkaServer) -> None:
    for end in (kafka.stop, kafka.kill):
        (kafka.directory / "fencing.log").unlink(missing_ok=True)
        end()
        kafka.start()

        assert (kafka.directory / "fencing.log").exists() == (end == kafka.kill)


def test_a_graceful_restart_brings_it_back(kafka: KafkaServer) -> None:
    before = kafka.pid

    kafka.restart()

    assert kafka.pid != before
    assert broker_answers(kafka.bootstrap_servers)


def test_a_frozen_broker_answers_again_after_it_was_let_go(kafka: KafkaServer) -> None:
    kafka.send_signal(signal.SIGSTOP)
    frozen = broker_answers(kafka.bootstrap_servers, timeout_seconds=0.5)

    kafka.send_signal(signal.SIGCONT)

    assert not frozen
    assert broker_answers(kafka.bootstrap_servers, timeout_seconds=30)


def test_topics_are_not_made_by_asking_for_them(kafka: KafkaServer) -> None:
    admin = admin_client(kafka.bootstrap_servers)

    admin.list_topics("misspelt", timeout=30)

    assert "misspelt" not in partitions_by_topic(admin, kafka.bootstrap_servers)


def test_creating_topics_again_grows_and_configures_them(kafka: KafkaServer) -> None:
    create_topics(kafka.bootstrap_servers, [TopicPlan("grown", 2, {"retention.ms": "1000000"})])
    produce_in_transaction(kafka.bootstrap_servers, "grown", b"kept", commit=True)

    for _ in range(2):
        create_topics(kafka.bootstrap_servers, [TopicPlan("grown", 3, {"retention.ms": "2000000"})])

    admin = admin_client(kafka.bootstrap_servers)
    assert partitions_by_topic(admin, kafka.bootstrap_servers)["grown"] == 3


def test_deleting_topics_that_are_not_there_is_fine(kafka: KafkaServer) -> None:
    create_topics(kafka.bootstrap_servers, [TopicPlan("deleted")])

    for _ in range(2):
        delete_topics(kafka.bootstrap_servers, ["deleted"])

    admin = admin_client(kafka.bootstrap_servers)
    assert "deleted" not in partitions_by_topic(admin, kafka.bootstrap_servers)


def test_a_refused_topic_setting_is_named(kafka: KafkaServer) -> None:
    with pytest.raises(TopicError, match=r"Kafka refused to create topic bad: .*retention\.ms"):
        create_topics(kafka.bootstrap_servers, [TopicPlan("bad", 1, {"retention.ms": "soon"})])


def test_a_broker_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    server = KafkaServer(tmp_path, settings={"transaction.state.log.num.partitions": "none"})

    with pytest.raises(ServerStartError, match=r"transaction\.state\.log\.num\.partitions"):
        server.start()

    assert not server.is_running()


def test_no_broker_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("delaytopic_cli.embedded.topics._TIMEOUT_SECONDS", 0.5)

    with pytest.raises(KafkaUnreachableError, match=r"no Kafka broker answers at 127\.0\.0\.1:1 "):
        create_topics("127.0.0.1:1", [TopicPlan("any")])
