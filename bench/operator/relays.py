"""Relays that there are as pods alone: one server answers for all of them, so that thousands fit on a machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Thread
from typing import Any, Self

from playground.kube.kube_client import KubeClient, Object, RequestRefused, Watch
from urllib3.exceptions import HTTPError

from delaytopic_api.relay import DueBin, RelayState, RelayStatus, ShardState, ShardStatus
from delaytopic_api.values import BackendType, Guarantee
from delaytopic_operator.observe.relay_pages import DEFAULT_PORT

PENDING = 1_000
BINS = 20
"""The bins of the due histogram, as many as a relay shows of ten minutes ahead."""
BIN_MS = 30_000
WATCHED_S = 300


class RelaysAsPods:
    """Gives each pod of a namespace an address, says that it is ready, and answers the operator for it."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        """`namespace` has pods of relays alone, each with one source partition; no node takes them."""
        self._client = client
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._addresses = (f"127.{77 + n // 65_536}.{n // 256 % 256}.{n % 256}" for n in count(256))
        self._owners: dict[str, tuple[str, str]] = {}
        """The pod and `namespace/name` of its DelayTopic, by address."""
        self._stopping = Event()
        self._watch: Watch | None = None
        self._server = _Server(("0.0.0.0", DEFAULT_PORT), self._owners)
        self._threads = [Thread(target=self._server.serve_forever, daemon=True), Thread(target=self._run, daemon=True)]

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; the pods stay as they are."""
        self._stopping.set()
        if self._watch is not None:
            self._watch.close()
        self._server.shutdown()
        self._server.server_close()

    def __len__(self) -> int:
        """Return how many are ready."""
        return len(self._owners)

    def _run(self) -> None:
        known: set[str] = set()
        while not self._stopping.is_set():
            with suppress(RequestRefused, HTTPError):
                for pod in self._pods():
                    if pod["metadata"]["uid"] not in known:
                        known.add(pod["metadata"]["uid"])
                        self._make_ready(pod)

    def _pods(self) -> Iterator[Object]:
        listed = self._client.get(self._path)
        yield from listed["items"]
        self._watch = self._client.watch(self._path, listed["metadata"]["resourceVersion"], seconds=WATCHED_S)
        yield from (change.object for change in self._watch if change.type == "ADDED")

    def _make_ready(self, pod: Object) -> None:
        metadata, address = pod["metadata"], next(self._addresses)
        labels = metadata["labels"]
        self._owners[address] = (
            metadata["name"],
            f"{labels['delaytopic.dev/namespace']}/{labels['delaytopic.dev/name']}",
        )
        now = metadata["creationTimestamp"]
        ready = [{"type": each, "status": "True", "lastTransitionTime": now} for each in ("ContainersReady", "Ready")]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": ready}
        self._client.merge(f"{self._path}/{metadata['name']}/status", {"status": status})


class _Server(ThreadingHTTPServer):
    """Answers at every address of this machine that only this machine reaches."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], owners: dict[str, tuple[str, str]]) -> None:
        super().__init__(address, _Handler)
        self.owners = owners
        self.started_ms = time.time_ns() // 1_000_000

    def server_bind(self) -> None:
        """Take the port of the loopback device alone: pods have an address each, but all of them its port."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")
        super().server_bind()


class _Handler(BaseHTTPRequestHandler):
    """The questions of one connection, which stays as that of a relay does."""

    server: _Server
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer with the page of the relay that has the address that was asked."""
        connection: socket.socket = self.connection
        owner = self.server.owners.get(connection.getsockname()[0])
        if owner is None:
            self.send_error(404)
            return
        body = status_of(*owner, self.server.started_ms, time.time_ns() // 1_000_000).to_operator_json().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def status_of(pod: str, delay_topic: str, started_ms: int, now_ms: int) -> RelayStatus:
    """Return what a relay says that delivers on time, with records due in the next ten minutes."""
    first_ms = now_ms - now_ms % BIN_MS
    bins = [DueBin(up_to_ms=first_ms + each * BIN_MS, records=PENDING // BINS) for each in range(1, BINS + 1)]
    next_due_ms = now_ms + BIN_MS
    held = ShardStatus(
        partition=0,
        state=ShardState.DELIVERING,
        committed_offset=0,
        position=0,
        pending=PENDING,
        overdue=0,
        ingest_lag=0,
        next_due_ms=next_due_ms,
        due_histogram=bins,
    )
    return RelayStatus(
        relay=pod,
        delay_topic=delay_topic,
        started_at_ms=started_ms,
        as_of_ms=now_ms,
        state=RelayState.RUNNING,
        guarantee=Guarantee.EXACTLY_ONCE,
        backend=BackendType.REDIS_ZSET,
        speedups=True,
        delivered_total=0,
        dead_lettered_total=0,
        superseded_total=0,
        cancelled_total=0,
        pending=PENDING,
        overdue=0,
        ingest_lag=0,
        memory_bytes=4_096,
        next_due_ms=next_due_ms,
        shards=[held],
        due_histogram=bins,
    )
