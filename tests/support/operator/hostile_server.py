"""A server that answers each connection with what a test says, for as long as anybody listens."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

Answer = Callable[[socket.socket, Event], None]
"""Gets the connection after the first request, and an event that is set when the test ends."""


@contextmanager
def hostile_server(answer: Answer) -> Iterator[int]:
    """Its port."""
    ended = Event()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            answer(connection, ended)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                Thread(target=serve, args=(connection,), daemon=True).start()

    Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.close()


def drip(first: bytes, each: bytes) -> Answer:
    """A little at once, then something every tenth of a second, for ever."""

    def answer(connection: socket.socket, ended: Event) -> None:
        connection.sendall(first)
        while not ended.wait(0.1):
            connection.sendall(each)

    return answer


def pour(first: bytes, each: bytes) -> Answer:
    """As much as the other side takes, for ever."""

    def answer(connection: socket.socket, ended: Event) -> None:
        connection.sendall(first)
        while not ended.is_set():
            connection.sendall(each)

    return answer
