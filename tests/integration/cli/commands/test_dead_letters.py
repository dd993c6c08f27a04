"""`dead-letters list` and `resend` on a real broker, killed, frozen and interrupted at the worst moments."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.child_process import ChildProcess, hearing_ctrl_c, is_stopped
from tests.support.gateway.dead_letters_on_kafka import AT_MS, OWN, PARTITIONS, Letters, letters_on
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for
from tests.support.relay.records import MakeRoute, Sent, produce
from tests.support.relay.routes import STEADY
from tests.unit.process.test_command_line import HARMLESS, HOSTILE

from delaytopic_api.records import DeadLetter, dead_letter_headers
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client import resending
from delaytopic_gateway.client.dead_letters import (
    Choice,
    Place,
    Progress,
    SecondSending,
    StoredRecord,
    second_sending,
)
from delaytopic_gateway.client.resending import Resending
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.errors import SupersededError
from delaytopic_gateway.kafka.cluster import KafkaCluster

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
        arguments = ["dead-letters", "resend", letters.source, "--all", *letters.way]
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

    assert run(["dead-letters", "list", letters.source, "-o", "text", *letters.way]) == 0

    head, *lines, summary = capsys.readouterr().out.splitlines()
    assert head.split() == ["PLACE", "WHEN", "REASON", "BYTES", "KEY", "SOURCE", "AGAIN", "DETAIL"]
    assert sorted((line.split()[0], line.split()[-6:]) for line in lines) == [
        ("0:0", ["expired", "9", "k", "0:0", "no", "why"]),
        ("0:1", ["too-large", "11", "k", "1:1", "no", "why"]),
        ("1:0", ["expired", "9", "k", "2:2", "no", "why"]),
    ]
    assert summary == "3 dead letters: 2 expired, 1 too-large"


def test_a_list_is_of_some_reasons_and_ends_at_its_limit(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "too-large", "too-large", "too-large")

    options = ["--reason", "too-large", "--limit", "2", "-o", "json"]
    assert run(["dead-letters", "list", letters.source, *letters.way, *options]) == 0

    page = json.loads(capsys.readouterr().out)
    shown = [(each["place"], each["reason"], each["valueBytes"]) for each in page["deadLetters"]]
    assert shown == [("0:3", "too-large", 11), ("0:2", "too-large", 11)]


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_part_of_a_record_reaches_the_terminal_as_a_command(
    form: str, letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write(HOSTILE, headers=[(HOSTILE, HOSTILE.encode())], detail=HOSTILE)
    produce(letters.broker, letters.topic, [Sent(HOSTILE.encode(), HOSTILE.encode(), [], 0)])

    assert run(["dead-letters", "list", letters.source, *letters.way, "-o", form]) == 0

    out = capsys.readouterr().out
    assert [line for line in out.split("\n") if not line.isprintable()] == []
    assert form == "text" or HARMLESS in out


def test_a_gateway_and_the_command_itself_list_and_leave_out_the_same(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given dead letters of a DelayTopic, of others in the same topic, and one that no relay wrote
    letters.write("expired", "too-large", "expired", "unsupported")
    Letters(letters.broker, f"{letters.source}.others", letters.topic).write("expired")
    produce(letters.broker, letters.topic, [Sent(b"k", b"stranger", [], 0)])
    served = replace(REMINDERS, source=letters.source, dead_letter=letters.topic)

    def said(command: str, *arguments: str) -> list[Any]:
        """Exit code, document and errors, first by the gateway, then without it."""
        found = []
        for way in (["--gateway", scene.url], letters.way):
            code = run(["dead-letters", command, letters.source, *arguments, "-o", "json", *way])
            said = capsys.readouterr()
            found.append((code, said.out and json.loads(said.out), said.err))
        return found

    with gateway_over(Scene({served: []}), cluster=KafkaCluster({"bootstrap.servers": letters.broker})) as scene:
        # When each shows them, and sends some
        lists, shown = said("list"), said("show", "0:1")
        by_place, by_reason = said("resend", "0:0", "0:1"), said("resend", "--all", "--reason", "expired")
        dry, rest, missing = said("resend", "--all", "--dry-run"), said("resend", "--all"), said("resend", "0:4")
        after = said("list")

    # Then they say the same, and what one has sent the other leaves out
    for first, second in (lists, shown, dry, missing, after):
        assert first == second
    assert [each["place"] for each in lists[0][1]["deadLetters"]] == ["0:3", "0:2", "0:1", "0:0"]
    assert [(each["sent"], each["sentBefore"]) for _, each, _ in by_place] == [(2, []), (0, ["0:0", "0:1"])]
    assert [each["places"] for _, each, _ in (*by_reason, *dry, *rest)] == [["0:2"], [], ["0:3"], ["0:3"], ["0:3"], []]
    assert (missing[0][0], missing[0][2]) == (2, f"error: {letters.topic} has no record at 0:4\n")
    assert {each["sentAgain"] for each in after[0][1]["deadLetters"]} == {True}
    assert letters.sent() == sorted(letters.written)


def test_an_open_transaction_ends_a_list_and_does_not_hold_it_up(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")
    producer = Producer({"bootstrap.servers": letters.broker, "transactional.id": unique("open")})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(letters.topic, b"not yet", partition=0)
    producer.flush(30)

    run(["dead-letters", "list", letters.source, "-o", "text", *letters.way])

    assert capsys.readouterr().out.splitlines()[-1] == "1 dead letter: 1 expired"
    producer.abort_transaction(30)


def test_all_are_sent_as_they_were_to_where_they_were(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "expired", "expired", "expired")

    assert letters.resend("--all") == 0

    assert sorted((each.at.partition, each.key, each.value, each.headers) for each in letters.arrived()) == [
        (partition, b"k", f"expired {number}".encode(), tuple(OWN))
        for partition, number in ((0, 0), (0, 3), (1, 1), (2, 2))
    ]
    said = f"sent 4 dead letters to {letters.source} again, from the first on\n"
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
        f"sent 1 dead letter to {letters.source} again",
        f"sent 0 dead letters to {letters.source} again",
    ]


@pytest.mark.nightly  # each day a gateway is killed in the middle: it sends by the same code
@pytest.mark.parametrize("when", ["before", "after"])
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

    assert older.child.wait(30) == 5
    (said,) = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert said.startswith(
        f"error: another dead-letters resend of {letters.topic} has started after this one, which ends for it; "
        "sent again for certain: 2 dead letters"
    )
    assert letters.sent() == letters.written


def test_ctrl_c_says_how_to_go_on(letters: Letters, halted: Halted, tmp_path: Path) -> None:
    letters.write(*["expired"] * 7)
    interrupted = halted("before")

    interrupted.child.send_signal(signal.SIGINT)
    interrupted.thaw()

    assert interrupted.child.wait(30) == 130
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == [
        "what was sent again is remembered: the same command goes on behind it"
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


def test_places_are_sent_once_and_all_leaves_them_out(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "expired", "too-large")
    letters.write("expired", partition=1)

    assert (letters.resend("0:2", "1:0", "0:2"), letters.resend("0:2", "0:0")) == (0, 0)

    assert letters.sent() == sorted(["expired 0", "too-large 2", "expired 3"])
    assert capsys.readouterr().out.splitlines() == [
        f"sent 2 dead letters to {letters.source} again",
        f"sent 1 dead letter to {letters.source} again",
        "not sent: 0:2: it was sent again before",
    ]
    letters.resend("--all")
    assert letters.sent() == sorted(letters.written)


def test_a_new_time_takes_the_place_of_their_own(letters: Letters) -> None:
    letters.write("expired")

    assert letters.resend("0:0", "--after", "5m") == 0

    assert [each.headers for each in letters.arrived()] == [(("a", b"1"), ("deliver-after", b"5m"))]


def test_a_partition_that_is_gone_is_left_to_the_key(letters: Letters) -> None:
    small = DeadLetter("expired", "why", letters.source, 7, 0, AT_MS)
    produce(letters.broker, letters.topic, [Sent(b"k", b"small", [*dead_letter_headers(small)], 1)])

    assert letters.resend("1:0") == 0
    assert letters.sent() == ["small"]


def test_a_dry_run_shows_all_and_sends_nothing(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired", "expired")

    assert letters.resend("--all", "--dry-run") == 0

    assert capsys.readouterr().out.splitlines() == [
        "would send 0:0",
        "would send 0:1",
        f"would send 2 dead letters to {letters.source} again, from the first on",
    ]
    letters.resend("--all")
    assert letters.sent() == letters.written


def test_a_record_that_no_relay_wrote_is_left_out_and_counted(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    letters.write("expired")
    produce(letters.broker, letters.topic, [Sent(b"k", b"stranger", [], 0)])
    letters.write("expired")

    assert (letters.resend("--all"), letters.resend("0:1")) == (0, 2)
    assert capsys.readouterr().err == f"error: {letters.topic} has no record at 0:1\n"
    run(["dead-letters", "list", letters.source, *letters.way])

    page = json.loads(capsys.readouterr().out)
    assert [each["place"] for each in page["deadLetters"]] == ["0:2", "0:0"]
    assert page["notes"] == [f"records of {letters.topic} that no relay wrote are left out: 1"]
    assert letters.sent() == letters.written


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

    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("error: Kafka refused 0:")
    assert "; sent again for certain: 0 dead letters; the same request goes on behind what was sent" in error
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


def test_who_is_fenced_while_records_are_produced_says_so(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    letters.write("expired", "expired")
    settings, choice = {"bootstrap.servers": letters.broker}, Choice(letters.source)
    overtaken = list[Place]()

    def overtake(record: StoredRecord, choice: Choice, partitions: int) -> SecondSending:
        if not overtaken:
            overtaken.append(record.place)
            Resending(settings, letters.topic, choice).send_all()
        return second_sending(record, choice, partitions)

    monkeypatch.setattr(resending, "second_sending", overtake)
    older = Resending(settings, letters.topic, choice)
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


def test_a_dead_letter_topic_in_place_of_the_source_is_told(
    letters: Letters, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["dead-letters", "list", letters.topic, "-b", letters.broker]) == 4

    error = capsys.readouterr().err
    assert error.startswith(f"error: there is no topic {letters.topic}.dlq in Kafka, or the login to it may not see it")
    assert error.endswith("; TOPIC is the source topic here, and --dead-letter names the dead-letter topic\n")


def test_a_topic_that_was_made_anew_is_told(letters: Letters, capsys: pytest.CaptureFixture[str]) -> None:
    letters.write("expired")
    letters.resend("--all")
    # What Kafka forgets with a topic, a copy of the group may still have.
    group = f"delaytopic-resend.{letters.topic}"
    member = Consumer({"bootstrap.servers": letters.broker, "group.id": group})
    progress = Progress().advanced(9, Choice(letters.source))
    member.commit(offsets=[TopicPartition(letters.topic, 0, 9, progress.metadata)], asynchronous=False)
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

    way = ["-b", broker, "--dead-letter", route.dead_letter]
    run(["dead-letters", "show", route.source, "0:0", *way])
    shown = json.loads(capsys.readouterr().out)
    run(["dead-letters", "resend", route.source, "0:0", *way, "--after", "1ms"])
    wait_for(lambda: relay.status()["deliveredTotal"] == 1, relay.why)

    source = shown["sourcePartition"], shown["sourceOffset"]
    assert (shown["reason"], source) == ("malformed-header", (place.partition, place.offset))
    (delivered,) = route.read(route.target)
    assert (delivered.key, delivered.value, delivered.headers[0]) == (b"k", b"tea", ("a", b"1"))
    assert [name for name, _ in delivered.headers] == ["a", "delay-receipt"]
