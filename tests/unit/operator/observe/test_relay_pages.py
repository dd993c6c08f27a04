"""Reading the pages of relays, from servers that are slow, wrong or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from tests.support.operator.hostile_server import Answer, hostile_server

from delaytopic_api import RelayStatus
from delaytopic_operator.observe.fleet import RelayPage
from delaytopic_operator.observe.relay_pages import RelayPages, page_address

Serve = Callable[..., dict[str, Any]]


def pod(name: str, port: int | None, address: str | None = "127.0.0.1", phase: str = "Running") -> dict[str, Any]:
    ports = [] if port is None else [{"name": "http", "containerPort": port}]
    status = {"phase": phase} | ({"podIP": address} if address else {})
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "relay", "ports": ports}]}, "status": status}


def status_page() -> RelayStatus:
    return RelayStatus.model_validate(
        {
            "relay": "relay-1",
            "delayTopic": "shop/reminders",
            "startedAtMs": 1,
            "asOfMs": 2,
            "state": "Running",
            "guarantee": "ExactlyOnce",
            "backend": "RedisZset",
            "speedups": True,
            "deliveredTotal": 1,
            "deadLetteredTotal": 0,
            "supersededTotal": 0,
            "cancelledTotal": 0,
            "busyRate": None,
            "pending": 3,
            "overdue": 0,
            "oldestOverdueMs": None,
            "nextDueMs": None,
            "ingestLag": 0,
            "memoryBytes": 1,
            "dueHistogram": [],
            "shards": [],
        }
    )


@pytest.fixture
def release() -> Iterator[Event]:
    """Releases servers whose body begins with `wait`."""
    event = Event()
    yield event
    event.set()


@pytest.fixture
def serve(release: Event) -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(body: bytes, code: int = 200) -> dict[str, Any]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if body == b"wait":
                    release.wait(30)
                self.send_response(code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None: ...

        servers.append(Server(("127.0.0.1", 0), Handler))
        Thread(target=servers[-1].serve_forever, args=(0.05,), daemon=True).start()
        return pod(f"relay-{len(servers)}", servers[-1].server_port)

    yield start
    release.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_each_pod_gets_its_page_or_the_reason_why_not(pages: RelayPages, serve: Serve) -> None:
    good = serve(status_page().to_json().encode(), 200)
    starting = serve(b"not yet", 503)
    other = serve(b'{"hello": 1}', 200)

    read = pages.read([good, starting, other, pod("gone", 1), pod("new", 8080, None)], 10)

    assert read[0] == RelayPage("relay-1", status_page(), None)
    assert read[1] == RelayPage("relay-2", None, "answers 503")
    assert (read[2].failure or "").startswith("answers something else than a relay's status")
    assert read[3].failure == "cannot be reached at http://127.0.0.1:1: ConnectionRefusedError"
    assert read[4] == RelayPage("new", None, "has no address yet")


def test_a_page_that_is_larger_than_all_pages_of_a_delay_topic_may_be_is_given_up(
    pages: RelayPages, serve: Serve
) -> None:
    huge = serve(b"x" * (8 * 1024 * 1024 + 1), 200)

    (read,) = pages.read([huge], 10)

    assert read.failure == "answers, with other relays, more than 8388608 bytes or 240000 values"


def test_another_page_of_a_pod_is_there_as_it_is_or_not_at_all(pages: RelayPages, serve: Serve) -> None:
    pods = [serve(b"one\ntwo\n", 200), serve(b"no", 503), serve(b"x" * (8 << 20) + b"x", 200), pod("gone", 1)]

    assert [pages.fetch(each, "/verdicts", 10) for each in pods] == [b"one\ntwo\n", None, None, None]


def test_another_page_that_hangs_is_waited_for_until_the_deadline(pages: RelayPages, serve: Serve) -> None:
    good, hanging = serve(b"page", 200), serve(b"wait", 200)

    assert pages.fetch(hanging, "/verdicts", 0.2) is None
    assert pages.fetch(good, "/verdicts", 10) == b"page"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n0\r\n\r\n"
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\none\n"


def test_an_answer_is_read_as_servers_and_proxies_write_it_and_only_whole(pages: RelayPages) -> None:
    answers = [CHUNKED, b"HTTP/1.0 200 OK\r\n\r\none\n", SHORT, CHUNKED[:-9], b"SSH-2.0-OpenSSH\r\n\r\n", b""]
    with ExitStack() as stack:
        ports = [stack.enter_context(hostile_server(saying(answer))) for answer in answers]

        read = [pages.fetch(pod("any", port), "/verdicts", 10) for port in ports]

    assert read == [b"one\ntwo\n", b"one\n", None, None, None, None]


def saying(answer: bytes) -> Answer:
    return lambda connection, _: connection.sendall(answer)


def test_one_that_hangs_holds_up_nobody_for_longer_than_the_deadline(pages: RelayPages, serve: Serve) -> None:
    good, hanging = serve(status_page().to_json().encode(), 200), serve(b"wait", 200)

    read = pages.read([hanging, good], 2)

    assert read == [
        RelayPage("relay-2", None, "did not answer within 2 s"),
        RelayPage("relay-1", status_page(), None),
    ]


@pytest.mark.parametrize(
    ("of", "address"),
    [
        (pod("a", 9000, "10.1.2.3"), "http://10.1.2.3:9000"),
        (pod("a", None, "10.1.2.3"), "http://10.1.2.3:8080"),
        (pod("a", 9000, "fd00::1"), "http://[fd00::1]:9000"),
        (pod("a", 9000, "10.1.2.3", "Failed"), None),
        (pod("a", 9000, None), None),
    ],
)
def test_addresses_are_those_of_pods_that_run(of: dict[str, Any], address: str | None) -> None:
    assert page_address(of) == address


MOST_PARTITIONS = 10_000
DUE_MS = 1_795_269_686_270
BINS = [{"upToMs": DUE_MS + number, "records": 10**9} for number in range(3)]
BUCKET = {"bucket": 1, "fromDelayMs": 10**9, "toDelayMs": 10**10, "pending": 10**9, "nextDueMs": DUE_MS}
RULES = {"dialect": "SchedulerJson", "maxDelayMs": 10**10, "defaultDelayMs": 10**9, "ids": "ByHeader"}
FORMER = {**RULES, "declaredMs": DUE_MS, "lastDueMs": DUE_MS, "records": 10**9}
HELD = (
    "it waits for a topic: topic shop.order-reminders.2026, partition 9999: does not acknowledge records since "
    "2026-11-27T20:00:00Z; it goes on by itself when that answers"
)
TROUBLE: dict[str, Any] = {
    "formerRules": [FORMER],
    "rulesWait": "records of before wait by rules with other names",
    "state": "Paused",
    "reason": "TargetUnavailable",
    "message": HELD,
}
"""The most that a relay has to say of a partition."""


def full_page(partitions: Iterable[int], **trouble: Any) -> RelayStatus:
    """Return a relay's page of partitions of which each has a backlog of every kind."""
    shards = [
        {
            "partition": number,
            "state": "Delivering",
            "committedOffset": 10**12 + number,
            "position": 10**12 + number,
            "cursor": {"dueMs": DUE_MS, "offset": 10**12},
            "pending": 10**9,
            "overdue": 10**6,
            "nextDueMs": DUE_MS,
            "ingestLag": 10**6,
            "replayLag": 10**6,
            "dueHistogram": BINS,
            "redisBytes": 10**10,
            "redisFull": True,
            "buckets": [BUCKET],
            **trouble,
        }
        for number in partitions
    ]
    status = status_page().model_dump(by_alias=True)
    return RelayStatus.model_validate({**status, "dueHistogram": BINS, "shards": shards})


@pytest.mark.takes_long("a page of ten thousand partitions is made and read")
def test_relays_of_ten_thousand_partitions_are_heard_whatever_they_have_to_say(
    pages: RelayPages, serve: Serve, record_property: Callable[[str, object], None]
) -> None:
    relays = 20
    said = [full_page(range(first, MOST_PARTITIONS, relays), **TROUBLE) for first in range(relays)]
    bodies = [each.to_operator_json().encode() for each in said]
    record_property("bytes", sum(map(len, bodies)))
    record_property("values", sum(body.count(b",") for body in bodies))

    read = pages.read([serve(body) for body in bodies], 30)

    heard = {shard.partition for page in read for shard in (page.status.shards if page.status else ())}
    assert [page.failure for page in read] == [None] * relays
    assert len(heard) == MOST_PARTITIONS


def test_a_page_for_operators_is_the_whole_page_but_for_what_is_not_read() -> None:
    whole = full_page(range(2), **TROUBLE)
    unread: dict[str, Any] = {"cursor": None, "due_histogram": [], "redis_bytes": None, "buckets": []}
    shards = [each.model_copy(update=unread) for each in whole.shards]

    read = RelayStatus.model_validate_json(whole.to_operator_json(), by_alias=True, by_name=False)

    assert read == whole.model_copy(update={"shards": shards})
