"""Dead letters by a gateway on a real broker, beside the command, killed and fenced at the worst moments."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its public names, by an implicit re-export
    AclOperation,
    ResourceType,
)
from tests.harness.shared_servers import SharedKafka
from tests.support.child_process import ChildProcess, is_stopped
from tests.support.gateway.dead_letters_on_kafka import Letters, letters_on
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.paths import ROOT
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent, produce
from tests.support.servers.secure_servers import PASSWORD, USERNAME, deny

from delaytopic_api.records import DeadLetter, dead_letter_headers
from delaytopic_gateway.client import resending
from delaytopic_gateway.client.dead_letters import Choice, Place
from delaytopic_gateway.client.topic_reader import read_topic
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.kafka import dead_letters
from delaytopic_gateway.kafka.cluster import KafkaCluster
from delaytopic_gateway.service.served_topics import ServedTopic

pytestmark = pytest.mark.integration

# A gateway in a process of its own, which stops itself in the second transaction, before or after its commit.
HALTING = """
import sys, time
from dataclasses import replace
from delaytopic_gateway.kafka.cluster import KafkaCluster
from tests.support.gateway.gateway import REMINDERS, Scene, gateway_over
from tests.support.gateway.halting import halt_in_second_transaction

_, when, broker, source, topic = sys.argv
halt_in_second_transaction(when, 2)
scene = Scene({replace(REMINDERS, source=source, dead_letter=topic): []})
with gateway_over(scene, cluster=KafkaCluster({"bootstrap.servers": broker})) as served:
    print(served.url, flush=True)
    time.sleep(600)
"""


class Answer(NamedTuple):
    status: int
    document: Any


class Client:
    """Asks a gateway about the dead letters of its DelayTopic."""

    def __init__(self, url: str) -> None:
        self._base = f"{url}/v1/delaytopics/shop/reminders/dead-letters"

    def __call__(self, path: str = "", document: Any = None) -> Answer:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self._base + path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.load(error))

    def send(self, **document: Any) -> Any:
        answer = self("/resend", document)
        assert answer.status == 202, answer.document
        return answer.document

    def places(self, query: str = "") -> list[str]:
        """The places of all pages."""
        found: list[str] = []
        after = ""
        while True:
            page = self(f"?{query}{after}").document
            found += [each["place"] for each in page["deadLetters"]]
            if page["next"] is None:
                return found
            after = f"&after={page['next']}"


@contextmanager
def gateway_of(letters: Letters, **settings: str) -> Iterator[Client]:
    scene = Scene({served_of(letters): []})
    with gateway_over(scene, cluster=KafkaCluster({"bootstrap.servers": letters.broker, **settings})) as served:
        yield Client(served.url)


def served_of(letters: Letters) -> ServedTopic:
    return replace(REMINDERS, source=letters.source, dead_letter=letters.topic)


@pytest.fixture
def letters(kafka: SharedKafka) -> Letters:
    return letters_on(kafka.bootstrap_servers)


@pytest.fixture
def client(letters: Letters) -> Iterator[Client]:
    with gateway_of(letters) as found:
        yield found


@pytest.fixture
def others(letters: Letters) -> Letters:
    """Another DelayTopic that has the same dead-letter topic."""
    source = f"{letters.source}.others"
    create_topics(letters.broker, [TopicPlan(source, 3)])
    return Letters(letters.broker, source, letters.topic)


def test_a_list_ends_where_it_holds_enough(letters: Letters, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "ROUNDS", (2, 3, 10))
    monkeypatch.setattr(dead_letters, "MOST_KEPT_BYTES", 3_000)
    letters.write(*["expired"] * 20)

    page = client().document

    # The third round would hold more.
    assert (page["lookedAt"], page["complete"]) == (2, False)
    assert len(client.places()) == 20


def test_places_that_are_too_large_together_are_refused(
    letters: Letters, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resending, "BATCH_BYTES", 1)
    letters.write("expired", "expired")

    answer = client("/resend", {"places": client.places()})

    assert (answer.status, "send fewer at a time" in answer.document["message"]) == (400, True)
    assert client.send(places=client.places()[:1])["sent"] == 1


def test_a_list_has_the_own_ones_the_newest_first(letters: Letters, others: Letters, client: Client) -> None:
    letters.write("expired", "too-large")
    others.write("expired", "expired")
    letters.write("expired", partition=1, at_ms=1_795_269_700_000)

    page, one = client().document, client("/0:1").document

    assert [each["place"] for each in page["deadLetters"]] == ["1:0", "0:1", "0:0"]
    assert (page["reasons"], page["complete"], page["lookedAt"], page["notes"]) == (
        {"expired": 2, "too-large": 1},
        True,
        5,
        [],
    )
    assert (one["reason"], one["content"]["value"], one["content"]["headers"][0]["name"]) == (
        "too-large",
        "too-large 1",
        "a",
    )
    assert [client(f"/{place}").status for place in ("0:2", "0:9", "7:0")] == [404] * 3


@pytest.mark.parametrize(
    "rounds", [(2, 5), *(pytest.param(rounds, marks=pytest.mark.nightly) for rounds in ((1,), (1_000,)))]
)
def test_page_by_page_each_letter_is_listed_once(
    letters: Letters, others: Letters, client: Client, rounds: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for partition in (0, 1):
        letters.write(*["expired"] * 3, partition=partition)
        others.write("expired", "expired", partition=partition)
        letters.write("too-large", partition=partition)
    monkeypatch.setattr(dead_letters, "ROUNDS", rounds)

    found = client.places("limit=3&")

    assert Counter(found) == Counter(f"{partition}:{at}" for partition in (0, 1) for at in (0, 1, 2, 5))


def test_all_are_sent_once_whoever_sends_them(letters: Letters, client: Client) -> None:
    letters.write("expired", "too-large", "expired")
    letters.write("expired", partition=1)

    sent = [client.send(reasons=["expired"]), client.send(all=True), client.send(all=True)]
    letters.resend("--all")

    assert [each["sent"] for each in sent] == [3, 1, 0]
    assert [each["fromFirst"] for each in sent] == [True, False, False]
    assert sent[0]["source"] == letters.source
    assert letters.sent() == sorted(letters.written)
    assert {each["sentAgain"] for each in client().document["deadLetters"]} == {True}


@pytest.mark.nightly  # each day both are asked for the same, in the tests of the command
def test_what_the_command_has_sent_is_not_sent_by_the_gateway(letters: Letters, client: Client) -> None:
    letters.write("expired", "too-large", "expired", "unsupported")
    letters.resend("--all", "--reason", "too-large")
    letters.resend("0:2")

    dry, sent = client.send(all=True, dryRun=True), client.send(all=True)

    assert (dry["sent"], dry["dryRun"], sent["sent"]) == (2, True, 2)
    assert letters.sent() == sorted(letters.written)


@pytest.mark.nightly  # each day by the command, which sends by the same code
def test_a_place_is_sent_once_however_often_it_is_asked_for(letters: Letters, client: Client) -> None:
    letters.write("expired", "expired", "expired")

    sent = [client.send(places=["0:1", "0:1"]), client.send(places=["0:1", "0:2"], deliverAfter="1h")]
    again = client.send(all=True)
    letters.resend("--all")

    assert [(each["sent"], each["sentBefore"]) for each in (*sent, again)] == [(1, []), (1, ["0:1"]), (1, [])]
    assert letters.sent() == letters.written
    (moved,) = [each for each in letters.arrived() if each.value == b"expired 2"]
    assert moved.headers == (("a", b"1"), ("deliver-after", b"1h"))


def test_others_in_the_same_topic_wait_for_their_own(letters: Letters, others: Letters, client: Client) -> None:
    letters.write("expired")
    others.write("expired", "too-large")
    letters.write("too-large")

    client.send(all=True)
    stranger = client("/resend", {"places": ["0:1"]})
    with gateway_of(others) as of_others:
        of_others.send(reasons=["expired"])
    for each in (letters, others):
        each.resend("--all")

    assert stranger == (400, {"message": f"{letters.topic} has no record at 0:1"})
    assert (letters.sent(), others.sent()) == (letters.written, others.written)


@pytest.mark.nightly  # each day by the command, which sends by the same code
def test_what_lacks_a_part_is_told_and_costs_no_other_anything(letters: Letters, client: Client) -> None:
    letters.write("expired")
    letters.write("too-large", omitted_bytes=9_000_000)

    sent = client.send(all=True)

    why = f"its value of 9,000,000 bytes was left out; the source topic has the record, at {letters.source}:1:1"
    assert (sent["sent"], sent["incomplete"], sent["incompleteCount"]) == (1, [{"place": "0:1", "reason": why}], 1)
    assert client("/0:1").document["cannotBeSent"] == why
    assert client("/resend", {"places": ["0:1"]}).status == 400


def test_a_request_sends_so_many_and_the_next_one_goes_on(
    letters: Letters, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.write(*["expired"] * 5)
    monkeypatch.setattr(dead_letters, "MOST_SENT", 2)

    sent = [client.send(all=True) for _ in range(4)]

    assert [(each["sent"], each["complete"]) for each in sent] == [(2, False), (2, False), (1, True), (0, True)]
    assert letters.sent() == letters.written


def test_places_beyond_what_kafka_remembers_beside_an_offset_are_refused_before_they_are_sent(
    letters: Letters, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.write(*["expired"] * 9)
    monkeypatch.setattr(resending, "MOST_OF_PLACES", 14)

    answers = [client("/resend", {"places": [f"0:{at}"]}).status for at in (1, 3, 5, 7)]

    assert answers == [202, 202, 202, 409]
    assert len(letters.sent()) == 3
    client.send(all=True)
    assert letters.sent() == letters.written


@pytest.mark.nightly
def test_kafka_remembers_as_many_places_as_are_taken(letters: Letters, client: Client) -> None:
    """Two characters each: as many as are taken of what brokers keep beside an offset."""
    letters.write(*["expired"] * 2_980)

    places = [Place(0, at) for at in range(0, 2_980, 2)]
    resending.Resending({"bootstrap.servers": letters.broker}, letters.topic, Choice(letters.source)).send_places(
        places
    )

    assert client.send(all=True)["sent"] == 1_490
    assert letters.sent() == sorted(letters.written)


Halted = Callable[[str], tuple[ChildProcess, Client]]


@pytest.fixture
def halted(letters: Letters, tmp_path: Path) -> Iterator[Halted]:
    """Start a gateway that has stopped before or after the commit of the second transaction of `all`."""
    child = ChildProcess()

    def start(when: str) -> tuple[ChildProcess, Client]:
        log = tmp_path / "log"
        command = [sys.executable, "-c", HALTING, when, letters.broker, letters.source, letters.topic]
        child.spawn(command, log, directory=ROOT)
        wait_for(lambda: "http" in log.read_text(encoding="utf-8"), log.read_text, timeout_s=30)
        return child, Client(log.read_text(encoding="utf-8").strip())

    yield start
    child.stop_whatever_happens()


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.nightly)])
def test_killed_in_the_middle_of_a_request_another_gateway_goes_on_and_sends_each_once(
    when: str, letters: Letters, client: Client, halted: Halted
) -> None:
    letters.write(*["expired"] * 7)
    child, killed = halted(when)
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(killed, "/resend", {"all": True})
        wait_for(lambda: is_stopped(child), lambda: "it did not stop", timeout_s=30)
        child.kill()
        with pytest.raises(OSError):  # noqa: PT011  # whatever the client says of a server that is gone
            answer.result()

    client.send(all=True)

    assert letters.sent() == letters.written


def test_the_command_ends_a_request_that_goes_on_and_its_caller_is_told(letters: Letters, halted: Halted) -> None:
    letters.write(*["expired"] * 7)
    child, older = halted("before")
    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(older, "/resend", {"all": True})
        wait_for(lambda: is_stopped(child), lambda: "it did not stop", timeout_s=30)
        assert letters.resend("--all") == 0
        child.thaw()
        found = answer.result()

    assert found == (
        409,
        {
            "message": f"another dead-letters resend of {letters.topic} has started after this one, which ends for it; "
            "sent again for certain: 2 dead letters and perhaps 2 more; the same request goes on behind what was sent"
        },
    )
    assert letters.sent() == letters.written


def test_a_second_request_at_the_same_gateway_waits_its_turn(
    letters: Letters, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters.write("expired")
    found: list[Answer] = []
    real = resending.Resending.send_all

    def send_all(self: resending.Resending) -> None:
        if not found:
            found.append(client("/resend", {"all": True}))
        real(self)

    monkeypatch.setattr(resending.Resending, "send_all", send_all)

    client.send(all=True)

    assert [each.status for each in found] == [409]
    assert letters.sent() == letters.written


def test_headers_with_names_that_are_no_text_belong_to_nobody(letters: Letters, client: Client) -> None:
    letters.write("expired")
    said = dead_letter_headers(DeadLetter("expired", "why", letters.source, 0, 9, 0))
    produce(letters.broker, letters.topic, [Sent(b"k", b"v", [("ok", None), *said[:2]], 0)])

    assert client.places() == ["0:0"]
    assert client("/0:1").status == 404


def test_a_login_that_lacks_a_right_is_told_which(kafka: SharedKafka, letters: Letters) -> None:
    letters.write("expired")
    guarded = kafka.listeners
    by_password = {
        "bootstrap.servers": guarded.sasl,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USERNAME,
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(kafka.certificates.authority),
    }
    group = f"delaytopic-resend.{letters.topic}"
    messages = []
    with gateway_of(letters, **by_password) as client:
        deny(guarded.plain, group, AclOperation.READ, kind=ResourceType.GROUP)
        messages.append(client("/resend", {"all": True}))
        deny(guarded.plain, f"{group}/all", AclOperation.WRITE, kind=ResourceType.TRANSACTIONAL_ID)
        messages.append(client("/resend", {"all": True}))
        deny(guarded.plain, letters.topic, AclOperation.READ)
        messages.append(client())

    assert [each.status for each in messages] == [502] * 3
    told = [re.findall("this login needs ([^;]+)", each.document["message"]) for each in messages]
    assert told == [
        [f"READ on group {group}"],
        [f"WRITE on transactional id {group}/all"],
        [f"READ on topic {letters.topic}"],
    ]
    assert read_topic({"bootstrap.servers": letters.broker}, letters.source) == []
