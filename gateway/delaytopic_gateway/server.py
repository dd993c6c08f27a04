"""Edge: the application behind a port, in a thread of this process."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import uvicorn
from starlette.types import ASGIApp

from delaytopic_gateway.access.bounds.connections import Connection
from delaytopic_gateway.access.guard import AuditLine
from delaytopic_process.errors import InputError

START_S = 10.0
MOST_CONNECTIONS = 500
"""The most connections at once; requests of further ones are refused. Each takes up to 128 KiB beside its request."""


@contextmanager
def serving(app: ASGIApp, port: int = 0, host: str = "127.0.0.1", *, forwarded: bool = True) -> Iterator[str]:
    """Serve while the body runs, in a thread and a loop of its own; yields the address. Raises `InputError`.

    Port 0 takes any free one.

    `forwarded`: a proxy on this machine may name the client in X-Forwarded-For; else a client's address is that of its
    connection, whatever its headers say.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        text = f"the gateway cannot listen on {host}:{port}: {error.strerror}; choose another port"
        raise InputError(text) from error
    config = uvicorn.Config(
        app,
        http=Connection,
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        ws="none",
        proxy_headers=forwarded,
        timeout_graceful_shutdown=round(START_S / 2),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="gateway", daemon=True)
    thread.start()
    give_up_s = time.monotonic() + START_S
    while not server.started and thread.is_alive() and time.monotonic() < give_up_s:
        time.sleep(0.01)
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_S)
        listener.close()


def audit_entry(line: AuditLine) -> str:
    """Return a line of JSON."""
    entry = {"ms": time.time_ns() // 1_000_000, **line._asdict()}
    return json.dumps({name: value for name, value in entry.items() if value != ""}) + "\n"


class AuditFile:
    """Appends a line of JSON for each request that writes."""

    def __init__(self, file: Path) -> None:
        """The file is made with the first line."""
        self._file = file

    def __call__(self, line: AuditLine) -> None:
        """Write the line."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(audit_entry(line))


class AuditStream:
    """Writes a line of JSON for each request that writes to a stream, at once. Called in the server's one thread."""

    def __init__(self, stream: TextIO) -> None:
        """The stream stays open."""
        self._stream = stream

    def __call__(self, line: AuditLine) -> None:
        """Write the line."""
        self._stream.write(audit_entry(line))
        self._stream.flush()
