"""Tests of the tests' client of API servers, with a server of their own."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.kube_client import Change, KubeClient, client_context
from tests.support.servers.tls import Certificates, make_certificates

LONG = "x" * 40_000
"""Of a change that takes more than one record of TLS, and more than one read."""


def line(name: str) -> bytes:
    return json.dumps({"type": "ADDED", "object": {"name": name}}).encode() + b"\n"


@contextmanager
def watched(certificates: Certificates, lines: bytes) -> Iterator[tuple[int, threading.Event]]:
    """Answer one request with these lines, and leave it open: the port, and an event once they are sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    sent, over = threading.Event(), threading.Event()

    def serve() -> None:
        with context.wrap_socket(listening.accept()[0], server_side=True) as connection:
            connection.recv(1 << 16)
            head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + b"%x\r\n" % len(lines) + lines + b"\r\n")
            sent.set()
            over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield listening.getsockname()[1], sent
        finally:
            over.set()
            server.join()


def test_a_watch_that_is_closed_gives_whole_changes_and_ends(tmp_path: Path) -> None:
    certificates = make_certificates(tmp_path)

    with watched(certificates, line("first") + line(LONG)) as (port, sent):
        client = KubeClient(f"https://127.0.0.1:{port}", client_context(str(certificates.authority)))
        watch = client.watch("/api/v1/pods", "1", seconds=1)
        changes = iter(watch)
        first = next(changes)
        sent.wait()
        watch.close()
        others = [*changes]

    assert first == Change("ADDED", {"name": "first"})
    assert others in ([], [Change("ADDED", {"name": LONG})])
