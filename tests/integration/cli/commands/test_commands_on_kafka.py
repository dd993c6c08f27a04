"""`send`, `cancel` and `watch` against a real broker, without a relay: they are plain producers and consumers."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from subprocess import PIPE

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.child_process import hearing_ctrl_c

from delaytopic_api import Receipt
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.raw_records import Coordinates, Headers
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, admin_client, create_topics, partitions_by_topic
from delaytopic_process.waiting import wait_until

PARTITIONS = 3
Content = tuple[bytes | None, bytes | None, Headers]


@pytest.fixture
def broker(kafka: KafkaAddress) -> str:
    return kafka.bootstrap_servers


@pytest.fixture
def topic(broker: str) -> str:
    name = unique("commands")
    create_topics(broker, [TopicPlan(name, PARTITIONS)])
    return name


def contents(broker: str, topic: str) -> list[Content]:
    records = read_topic({"bootstrap.servers": broker}, topic)
    return sorted(((record.key, record.value, record.headers) for record in records), key=repr)


def test_each_input_line_becomes_a_record(broker: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"k1|one\nk2|two\n")))

    code = run(["send", topic, "-b", broker, "--after", "5s", "--key-separator", "|", "--header", "a=1"])

    headers: Headers = (("a", b"1"), ("deliver-after", b"5s"))
    assert (code, contents(broker, topic)) == (0, [(b"k1", b"one", headers), (b"k2", b"two", headers)])


def test_many_records_are_sent_and_summed_up(broker: str, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    first_ms = 1_795_269_686_000
    code = run(["send", topic, "-b", broker, "--count", "5000", "--at", str(first_ms), "--spread", "5s", "-o", "json"])

    assert (code, json.loads(capsys.readouterr().out)) == (
        0,
        {"topic": topic, "sent": 5_000, "firstDueMs": first_ms, "lastDueMs": first_ms + 5_000, "interrupted": False},
    )
    assert len(contents(broker, topic)) == 5_000


def test_cancels_that_nobody_can_place_reach_all_partitions_of_the_topic(broker: str, topic: str) -> None:
    run(["send", topic, "-b", broker, "--after", "1h", "--count", "4", "--id", "id-{n}"])

    codes = [run(["cancel", topic, "id-1", "id-2", "-b", broker, *options]) for options in ([], ["--no-wait"])]

    records = read_topic({"bootstrap.servers": broker}, topic)
    cancels = sorted((record.key, record.at.partition) for record in records if record.value is None)
    partitions = {partition for _, partition in cancels}
    assert codes == [8, 0]
    assert len({record.at.partition for record in records if record.value is not None}) > 1
    assert cancels == sorted([(key, number) for key in (b"id-1", b"id-2") for number in partitions] * 2)
    assert len(partitions) == PARTITIONS


def test_watch_shows_committed_records_with_their_receipts(
    broker: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    receipt = Receipt(1_000, 2, 17, 1_007, "shop.delayed").encode().decode()
    run(["send", topic, "-b", broker, "--value", "tea", "--key", "k", "--header", f"delay-receipt={receipt}"])
    capsys.readouterr()

    code = run(["watch", topic, "-b", broker, "--from-beginning", "--limit", "1", "-o", "json"])

    shown = json.loads(capsys.readouterr().out)
    assert code == 0
    assert {name: shown[name] for name in ("key", "value", "dueMs", "latenessMs", "source", "arrivedMs")} == {
        "key": "k",
        "value": "tea",
        "dueMs": 1_000,
        "latenessMs": 7,
        "source": "shop.delayed:2:17",
        "arrivedMs": None,
    }


def test_a_misspelt_topic_is_not_made_and_the_right_one_is_hinted_at(
    broker: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["send", f"{topic}s", "-b", broker, "--value", "v"])

    assert code == 4
    assert capsys.readouterr().err.startswith(f"error: there is no topic {topic}s at {broker}; did you mean {topic}")
    assert f"{topic}s" not in partitions_by_topic(admin_client(broker), broker)


def test_a_record_that_kafka_refuses_is_a_clear_error(
    broker: str, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topics(broker, [TopicPlan(topic, 3, {"max.message.bytes": "1000"})])

    code = run(["send", topic, "-b", broker, "--value", "v" * 2_000])

    assert code == 4
    error = capsys.readouterr().err
    assert error.startswith(f"error: Kafka refused a record to {topic}: ")
    assert error.endswith("; nothing was sent\n")


def test_a_line_that_cannot_be_sent_is_named_with_the_number_of_those_before_it(
    broker: str, topic: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"k1|one\nk2|two\nthree\nk4|four\n")))

    code = run(["send", topic, "-b", broker, "--after", "5s", "--key-separator", "|"])

    text = "error: line 3 of the input has no key separator '|'; 2 records were sent before\n"
    assert (code, capsys.readouterr().err) == (2, text)
    assert [value for _, value, _ in contents(broker, topic)] == [b"one", b"two"]


def test_ctrl_c_while_lines_are_awaited_says_how_many_were_sent(broker: str, topic: str) -> None:
    command = [sys.executable, "-m", "delaytopic_cli", "send", topic, "-b", broker, "--after", "5s", "-o", "json"]
    with hearing_ctrl_c(), subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\ntwo\n")
        process.stdin.flush()
        assert wait_until(lambda: len(contents(broker, topic)) == 2, timeout_seconds=30)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stderr is not None
        said, complained = process.stdout.read(), process.stderr.read()

    summary = json.loads(said)
    assert (process.returncode, complained, summary["sent"], summary["interrupted"]) == (130, b"", 2, True)


def test_the_reader_knows_where_each_record_was(broker: str, topic: str) -> None:
    run(["send", topic, "-b", broker, "--count", "50", "--key", "k{n}"])

    records = read_topic({"bootstrap.servers": broker}, topic)

    by_partition = {number: [record.at for record in records if record.at.partition == number] for number in range(3)}
    assert by_partition == {
        number: [Coordinates(topic, number, offset) for offset in range(len(by_partition[number]))]
        for number in range(3)
    }
    assert sum(map(len, by_partition.values())) == 50


def test_no_broker_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("delaytopic_gateway.client.kafka_clients.METADATA_TIMEOUT_SECONDS", 0.5)

    code = run(["watch", "b", "-b", "127.0.0.1:1"])

    assert code == 4
    assert capsys.readouterr().err.startswith("error: no Kafka broker answers at 127.0.0.1:1 ")
