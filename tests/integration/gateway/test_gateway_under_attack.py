"""A gateway as a process, with hostile callers: it stays within the memory of its pod, and its probes are answered."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.gateway.gateway_process import HEALTH_S, POD_BYTES, GatewayProcess, Settings, asked

from delaytopic_api.relay import PendingContent, PendingList, PendingRecord, PendingShard
from delaytopic_gateway.client.topics import TopicPlan, create_topics
from delaytopic_gateway.jobs import jobs_topic_plan

pytestmark = [pytest.mark.integration, pytest.mark.alone]

TEAMS: Final = 6
READ_S: Final = 10.0
"""Given to readers in place of half a minute: the gateway took no less memory with it."""
TEXT: Final = "\x01" * 100_000
"""In JSON six times as long."""


class HostileRelay:
    """Answers lists of as many large records as are asked for, 4 MiB at the most, and never gets any further."""

    def __init__(self, delay_topic: str, source: str) -> None:
        content = PendingContent(value=TEXT)
        records = [
            PendingRecord(due_ms=1 << 40, partition=0, offset=each, target="t", id=f"{each}", content=content)
            for each in range(40)
        ]
        shards = [PendingShard(partition=0, listed=True, ingested=0)]
        whole = PendingList(
            relay="relay-0",
            delay_topic=delay_topic,
            source=source,
            source_partitions=1,
            as_of_ms=1,
            pending=40,
            overdue=0,
            ingest_lag=0,
            limit=100,
            complete=False,
            limited=True,
            shards=shards,
            records=records,
        )
        answers = {
            size: whole.model_copy(update={"records": records[:size]}).to_json().encode() for size in (0, 10, 40)
        }

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                size = 0 if query.get("limit") == ["0"] else 10 if "maxBytes" in query else 40
                self.send_response(200)
                self.send_header("Content-Length", str(len(answers[size])))
                self.end_headers()
                self.wfile.write(answers[size])

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def gateway(kafka: KafkaAddress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GatewayProcess]:
    # As in the chart.
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    source, jobs = unique("source"), unique("jobs")
    create_topics(kafka.bootstrap_servers, [TopicPlan(source, 1), jobs_topic_plan(jobs)])
    with closing(HostileRelay("shop/reminders", source)) as relay:
        settings = Settings(
            namespace="shop",
            name="reminders",
            source=source,
            target="t",
            dead_letter="d",
            max_delay_ms=1 << 50,
            bootstrap_servers=kafka.bootstrap_servers,
            jobs_topic=jobs,
            relay_urls=[relay.url],
            is_shared=True,
            read_s=READ_S,
        )
        process = GatewayProcess(settings, tmp_path)
        try:
            yield process.start()
        finally:
            process.stop_whatever_happens()


class Attack:
    """Callers of several teams, each with a connection of its own."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self._gateway = gateway
        host, _, port = gateway.url.removeprefix("http://").partition(":")
        self._address = host, int(port)

    def _connected(self, number: int, method: str, path: str, *headers: str) -> closing[socket.socket]:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.settimeout(60)
        client.connect(self._address)
        lines = [f"{method} {self._gateway.base}{path} HTTP/1.1", "Host: localhost", f"user: team {number % TEAMS}"]
        client.sendall("\r\n".join([*lines, *headers, "", ""]).encode())
        return closing(client)

    def read_slowly(self, number: int) -> None:
        """Ask for much and read none of it, until the gateway hangs up."""
        with self._connected(number, "GET", "/records?contents=true&limit=1000") as client:
            end = select.poll()
            end.register(client, select.POLLRDHUP)
            assert end.poll(120_000), "the gateway does not hang up"

    def send_much(self, number: int) -> None:
        """Send 64 MiB, in chunks and with a small length besides."""
        headers = "Content-Type: application/json", "Content-Length: 10", "Transfer-Encoding: chunked"
        with self._connected(number, "POST", "/records", *headers) as client, suppress(OSError):
            for _ in range(64):
                client.sendall(b"100000\r\n%s\r\n" % bytes(1 << 20))

    def send_parts(self, number: int) -> None:
        """Send 2 MiB of JSON of which each three bytes are an object."""
        self._send(number, b"[" + b"{}," * 690_000 + b"{}]")

    def send_text(self, number: int) -> None:
        """Send a value of 2 MiB that takes four bytes a character in memory."""
        self._send(number, json.dumps({"deliverAfter": "1h", "value": "\N{ROCKET}" + "x" * 2_000_000}).encode())

    def ask_for_jobs(self, number: int) -> None:
        """Ask for a job that waits."""
        self._send(number, json.dumps({"action": "Cancel", "id": f"job-{number}", "selector": {}}).encode(), "/jobs")

    def _send(self, number: int, body: bytes, path: str = "/records") -> None:
        headers = "Content-Type: application/json", f"Content-Length: {len(body)}"
        with self._connected(number, "POST", path, *headers) as client, suppress(OSError):
            client.sendall(body)
            client.recv(65_536)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the kernel has to tell the memory of a process")
@pytest.mark.takes_long("a reader has ten seconds before the gateway hangs up")
def test_hostile_callers_neither_stop_it_nor_take_the_memory_of_its_pod(
    gateway: GatewayProcess, record_property: Callable[[str, object], None]
) -> None:
    attack = Attack(gateway)
    attacks = [
        *[attack.read_slowly] * 40,
        *[attack.send_much] * 6,
        *[attack.send_parts] * 18,
        *[attack.send_text] * 18,
        *[attack.ask_for_jobs] * 18,
    ]
    with ThreadPoolExecutor(len(attacks)) as threads:
        under_way = [threads.submit(attack, number) for number, attack in enumerate(attacks)]
        waits_s = []
        while not all(each.done() for each in under_way):
            waits_s.append(asked(f"{gateway.probes}/healthz"))
            threading.Event().wait(0.05)
        for each in under_way:
            each.result()

    record_property("memory", f"{gateway.most_bytes() >> 20} MiB")
    record_property("healthz", f"{max(waits_s):.2f} s at the most, of {len(waits_s)}")
    assert gateway.most_bytes() < POD_BYTES
    assert max(waits_s) < HEALTH_S
    assert gateway.child.poll() is None
    assert asked(f"{gateway.url}/healthz") < HEALTH_S
