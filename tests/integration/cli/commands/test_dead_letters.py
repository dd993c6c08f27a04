"""`dead-letters list` and `resend` on a real broker, killed, frozen and interrupted at the worst moments."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.child_process import ChildProcess, hearing_ctrl_c, is_stopped
from tests.support.gateway.dead_letters_on_kafka import AT_MS, OWN, PARTITIONS, Letters, letters_on
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, produce
from tests.support.relay.routes import STEADY
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_api.records import DeadLetter, dead_letter_headers
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client import resending
from delaytopic_gateway.client.dead_letters import Choice, SecondSending, StoredRecord
from delaytopic_gateway.client.resending import Resending
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.errors import SupersededError

pytestmark = pytest.mark.integration

BATCH = 2
# The command in a process of its own, which stops itself in the second transaction, before or after its commit.
HALTING = """
import sys
from delaytopic_cli.__main__ import main
from tests.support.gateway.halting import halt_in_second_transaction

halt_in_second_transaction(sys.argv.pop(1), int(sys.argv.pop(1)))
main()
"""


@pytest.fixture
def letters(kafka: KafkaAddress) -> Letters:
    return letters_on(kafka.bootstrap_servers)


Halted = Callable[[str], ChildProcess]


@pytest.fixture
def halted(letters: Letters, tmp_path: Path) -> Iterator[Halted]:
    """Start `resend --all` in a process that has stopped before or after the commit of its second transaction."""
    child = ChildProcess()

    def start(when: str) -> ChildProcess:
        arguments = ["dead-letters", "resend", letters.topic, "--all", "-b", letters.broker]
        with hearing_ctrl_c():
            command = [sys.executable, "-c", HALTING, when, str(BATCH), *arguments]
            child.spawn(command, tmp_path / "log", directory=ROOT)
        wait_for(lambda: is_stopped(child), (tmp_path / "log").read_text, timeout_s=20)
        return child

    yield start
    child.stop_whatever_happens()


def test_a_list_shows_each_and_counts_the_reasons(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "too-large")
    letters.write("expired", partition=1)

    assert run(["dead-letters", "list", letters.topic, "-b", letters.broker]) == 0

    head, *lines, summary = capsys.readouterr().out.splitlines()
    assert head.split() == ["PLACE", "WHEN", "REASON", "BYTES", "KEY", "SOURCE", "DETAIL"]
    assert sorted((line.split()[0], line.split()[-5:]) for line in lines) == [
        ("0:0", ["expired", "9", "k", f"{letters.source}:0:0", "why"]),
        ("0:1", ["too-large", "11", "k", f"{letters.source}:1:1", "why"]),
        ("1:0", ["expired", "9", "k", f"{letters.source}:2:2", "why"]),
    ]
    assert summary == "3 dead letters: 2 expired, 1 too-large"


def test_a_list_is_of_some_reasons_and_ends_at_its_limit(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "too-large", "too-large", "too-large")

    options = ["--reason", "too-large", "--limit", "2", "-o", "json"]
    assert run(["dead-letters", "list", letters.topic, "-b", letters.broker, *options]) == 0

    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["offset"], each["reason"], each["value"]) for each in shown] == [
        (1, "too-large", "too-large 1"),
        (2, "too-large", "too-large 2"),
    ]


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_part_of_a_record_reaches_the_terminal_as_a_command(
    form: str, letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write(HOSTILE, headers=[(HOSTILE, HOSTILE.encode())], detail=HOSTILE)
    produce(letters.broker, letters.topic, [Sent(HOSTILE.encode(), HOSTILE.encode(), [], 0)])

    assert run(["dead-letters", "list", letters.topic, "-b", letters.broker, "-o", form]) == 0

    out = capsys.readouterr().out
    assert [line for line in out.split("\n") if not line.isprintable()] == []
    assert form == "table" or HARMLESS in out


def test_an_open_transaction_ends_a_list_and_does_not_hold_it_up(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")
    producer = Producer({"bootstrap.servers": letters.broker, "transactional.id": unique("open")})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(letters.topic, b"not yet", partition=0)
    producer.flush(30)

    run(["dead-letters", "list", letters.topic, "-b", letters.broker])

    assert capsys.readouterr().out.splitlines()[-1] == "1 dead letter: 1 expired"
    producer.abort_transaction(30)


def test_all_are_sent_as_they_were_to_where_they_were(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "expired", "expired", "expired")

    assert letters.resend("--all") == 0

    assert sorted((each.at.partition, each.key, each.value, each.headers) for each in letters.arrived()) == [
        (partition, b"k", f"expired {number}".encode(), tuple(OWN))
        for partition, number in ((0, 0), (0, 3), (1, 1), (2, 2))
    ]
    said = f"sent 4 dead letters again, from the first on, 4 to {letters.source}\n"
    assert capsys.readouterr().out == said


def test_all_is_what_was_not_sent_before(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired")
    letters.write("expired", partition=1)
    letters.resend("--all")
    letters.write("expired")

    assert letters.resend("--all") == 0
    assert letters.resend("--all") == 0

    assert letters.sent() == letters.written
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"sent 1 dead letter again, 1 to {letters.source}",
        "sent 0 dead letters again",
    ]


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.nightly)])
def test_killed_in_the_middle_and_started_again_it_sends_each_once(when: str, letters: Letters, halted: Halted) -> None:
    letters.write(*["expired"] * 7)
    halted(when).kill()

    assert letters.resend("--all") == 0

    assert letters.sent() == letters.written


def test_of_two_the_older_is_fenced_and_says_so(letters: Letters, halted: Halted, tmp_path: Path) -> None:
    letters.write(*["expired"] * 7)
    older = halted("before")

    assert letters.resend("--all") == 0
    older.thaw()

    assert older.child.wait(30) == 4
    first, second = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert (
        first == f"error: another dead-letters resend of {letters.topic} has started after this one, which ends for it"
    )
    assert second.startswith("error: sent again for certain: 2 dead letters")
    assert letters.sent() == letters.written


def test_ctrl_c_says_what_is_certain_and_how_to_go_on(letters: Letters, halted: Halted, tmp_path: Path) -> None:
    letters.write(*["expired"] * 7)
    interrupted = halted("before")

    interrupted.child.send_signal(signal.SIGINT)
    interrupted.thaw()

    assert interrupted.child.wait(30) == 130
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == [
        "sent again for certain: 2 dead letters; the same command goes on behind what was sent"
    ]
    assert len(letters.sent()) == BATCH
    letters.resend("--all")
    assert letters.sent() == letters.written


def test_those_of_other_reasons_wait_for_a_later_all(letters: Letters) -> None:
    letters.write("expired", "too-large", "expired", "unsupported")

    letters.resend("--all", "--reason", "expired")
    assert letters.sent() == ["expired 0", "expired 2"]
    letters.write("expired", "too-large")
    letters.resend("--all", "--reason", "too-large", "--reason", "expired")
    assert letters.sent() == sorted(set(letters.written) - {"unsupported 3"})
    letters.resend("--all")

    assert letters.sent() == sorted(letters.written)


def test_places_are_sent_whatever_was_sent_before_and_all_leaves_them_out(letters: Letters) -> None:
    letters.write("expired", "expired", "too-large")
    letters.write("expired", partition=1)

    for _ in range(2):
        assert letters.resend("0:2", "1:0", "0:0", "0:2") == 0

    assert letters.sent() == sorted(2 * ["expired 0", "too-large 2", "expired 3"])
    letters.resend("--all")
    assert letters.sent() == sorted(2 * ["expired 0", "too-large 2", "expired 3"] + ["expired 1"])


def test_a_new_time_and_another_topic(letters: Letters) -> None:
    letters.write("expired")
    other = f"{letters.source}.other"
    create_topics(letters.broker, [TopicPlan(other, 1)])

    assert letters.resend("0:0", "--to", other, "--after", "5m") == 0

    assert [each.headers for each in letters.arrived(other)] == [(("a", b"1"), ("deliver-after", b"5m"))]
    assert letters.sent() == []


def test_a_partition_that_is_gone_is_left_to_the_key(letters: Letters) -> None:
    create_topics(letters.broker, [TopicPlan(f"{letters.source}.small", 1)])
    small = DeadLetter("expired", "why", f"{letters.source}.small", 7, 0, AT_MS)
    produce(letters.broker, letters.topic, [Sent(b"k", b"small", [*dead_letter_headers(small)], 1)])

    assert letters.resend("1:0") == 0
    assert letters.sent(f"{letters.source}.small") == ["small"]


def test_a_dry_run_shows_all_and_sends_nothing(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "expired")

    assert letters.resend("--all", "--dry-run") == 0

    assert capsys.readouterr().out.splitlines() == [
        f"0:0 to {letters.source}, partition 0",
        f"0:1 to {letters.source}, partition 1",
        f"would send 2 dead letters again, from the first on, 2 to {letters.source}",
    ]
    letters.resend("--all", "-o", "json")
    assert json.loads(capsys.readouterr().out) == {
        "topic": letters.topic,
        "dryRun": False,
        "sent": 2,
        "to": {letters.source: 2},
        "incomplete": [],
    }
    assert letters.sent() == letters.written


def test_a_record_without_a_source_ends_it_behind_what_can_be_sent(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")
    produce(letters.broker, letters.topic, [Sent(b"k", b"stranger", [], 0)])
    letters.write("expired")

    assert letters.resend("--all") == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: 0:1 does not say from which topic it came; name it with --to",
        "error: sent again for certain: 1 dead letter; the same command goes on behind what was sent",
    ]
    assert letters.resend("--all", "--to", letters.source) == 0
    assert letters.sent() == [*letters.written, "stranger"]


def test_what_lacks_a_part_is_told_and_costs_no_other_anything(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")
    letters.write("too-large", omitted_bytes=9_000_000)
    letters.write("expired")

    assert letters.resend("--all") == 1

    assert capsys.readouterr().err.splitlines() == [
        "not sent: 0:1: its value of 9,000,000 bytes was left out; "
        f"the source topic has the record, at {letters.source}:1:1",
        "error: 1 dead letter cannot be sent again from here",
    ]
    assert letters.resend("0:0", "0:1") == 2
    assert letters.sent() == ["expired 0", "expired 2"]


def test_what_kafka_refuses_is_told_with_its_place_and_nothing_of_its_batch_is_sent(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired", "expired")
    create_topics(letters.broker, [TopicPlan(letters.source, PARTITIONS, {"max.message.bytes": "80"})])

    assert letters.resend("0:0", "0:1") == 4

    error = capsys.readouterr().err.splitlines()
    assert error[0].startswith("error: Kafka refused 0:")
    assert error[1] == "error: sent again for certain: 0 dead letters; give the same command again"
    assert letters.sent() == []


def test_one_that_is_refused_is_told_at_once_though_others_wait_behind_it(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given records of one partition, of which Kafka takes all but the third
    create_topics(letters.broker, [TopicPlan(letters.source, PARTITIONS, {"max.message.bytes": "100000"})])
    found = [DeadLetter("expired", "why", letters.source, 0, number, AT_MS) for number in range(40)]
    sizes = [120_000 if number == 2 else 20_000 for number in range(40)]
    records = [
        Sent(b"k", b"v" * size, [*OWN, *dead_letter_headers(letter)], 0)
        for letter, size in zip(found, sizes, strict=True)
    ]
    produce(letters.broker, letters.topic, records)

    began_s = time.monotonic()
    code = letters.resend("--all")
    took_s = time.monotonic() - began_s

    assert (code, letters.sent()) == (4, [])
    assert capsys.readouterr().err.startswith("error: Kafka refused 0:2: ")
    assert took_s < resending.TIMEOUT_SECONDS / 2


def test_who_is_fenced_while_records_are_produced_says_so(letters: Letters) -> None:
    letters.write("expired", "expired")
    settings, choice = {"bootstrap.servers": letters.broker}, Choice()

    def overtake(record: StoredRecord, sending: SecondSending) -> None:
        if record.place.offset == 0:
            Resending(settings, letters.topic, choice).send_all()

    older = Resending(settings, letters.topic, choice, show=overtake)
    with pytest.raises(SupersededError):
        older.send_all()

    assert (older.outcome.certain, letters.sent()) == ("sent again for certain: 0 dead letters", letters.written)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["0:9"], "error: {topic} has no record at 0:9"),
        (["7:0", "0:0"], "error: {topic} has no record at 7:0"),
        ([], "error: name places such as 0:17, or all with --all; not both"),
        (["0:0", "--all"], "error: name places such as 0:17, or all with --all; not both"),
        (["0:0", "--to", "no-such-topic"], "error: 0:0 cannot be sent: there is no topic no-such-topic at "),
    ],
)
def test_wrong_input_is_one_clear_line(
    arguments: list[str], line: str, letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")

    assert letters.resend(*arguments) == 2

    error = capsys.readouterr().err
    assert error.startswith(line.format(topic=letters.topic))
    assert error.count("\n") == 1


def test_a_topic_that_was_made_anew_is_told(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired")
    letters.resend("--all")
    # What Kafka forgets with a topic, a copy of the group may still have.
    group = f"delaytopic-resend.{letters.topic}"
    member = Consumer({"bootstrap.servers": letters.broker, "group.id": group})
    member.commit(offsets=[TopicPartition(letters.topic, 0, 9)], asynchronous=False)
    member.close()

    assert letters.resend("--all") == 4
    assert "it was made anew; delete the consumer group delaytopic-resend." in capsys.readouterr().err


def test_a_dead_letter_of_a_relay_is_mended_and_delivered(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route(limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    broker = route.servers.bootstrap_servers
    (place,) = produce(broker, route.source, [Sent(b"k", b"tea", [("a", b"1"), ("deliver-at", b"soon")])])
    wait_for(lambda: relay.status()["deadLetteredTotal"] == 1, relay.why)

    run(["dead-letters", "list", route.dead_letter, "-b", broker, "-o", "json"])
    shown = json.loads(capsys.readouterr().out)
    run(["dead-letters", "resend", route.dead_letter, "0:0", "-b", broker, "--after", "1ms"])
    wait_for(lambda: relay.status()["deliveredTotal"] == 1, relay.why)

    assert (shown["reason"], shown["source"]) == (
        "malformed-header",
        f"{route.source}:{place.partition}:{place.offset}",
    )
    (delivered,) = route.read(route.target)
    assert (delivered.key, delivered.value, delivered.headers[0]) == (b"k", b"tea", ("a", b"1"))
    assert [name for name, _ in delivered.headers] == ["a", "delay-receipt"]
