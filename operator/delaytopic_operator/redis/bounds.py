"""Edge: what a Redis, which may be a tenant's, can cost at most: the bytes and the time of each answer."""

from __future__ import annotations

from socket import socket
from time import monotonic
from typing import Any, Final

import redis
from redis._parsers import _RESP2Parser

MOST_BYTES: Final = 4 << 20
"""Of one answer; a thousand names of keys, or the slots of a large cluster, are far less."""


class BoundedPool(redis.ConnectionPool):
    """Connections whose answers end, whatever the server sends."""

    def __init__(self, connection_class: type[redis.Connection] = redis.Connection, **options: Any) -> None:
        # The parser in C makes room for as many items as an answer announces, before any of them is there.
        super().__init__(_bounded(connection_class), **{**options, "parser_class": _RESP2Parser})


class BoundedSocket:
    """A socket that counts from the last request on; everything else is the socket's own."""

    def __init__(self, of: socket, timeout_s: float) -> None:
        """`timeout_s` is for a whole answer: the socket's own is for each part of it."""
        self._of = of
        self._timeout_s = timeout_s
        self._begin()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def sendall(self, data: bytes) -> None:
        """Send a request, of which the answer comes next."""
        self._begin()
        self._of.sendall(data)

    def recv_into(self, buffer: bytearray, *arguments: int) -> int:
        """Receive a part of the answer; raises `TimeoutError` and `ConnectionError` beyond the bounds."""
        self._check_time()
        return self._counted(self._of.recv_into(buffer, *arguments))

    def recv(self, size: int, *flags: int) -> bytes:
        """Receive a part of the answer; raises `TimeoutError` and `ConnectionError` beyond the bounds."""
        self._check_time()
        data = self._of.recv(size, *flags)
        self._counted(len(data))
        return data

    def _begin(self) -> None:
        self._left = MOST_BYTES
        self._ends = monotonic() + self._timeout_s

    def _check_time(self) -> None:
        if monotonic() > self._ends:
            raise TimeoutError(f"the answer did not end within {self._timeout_s:g} s")

    def _counted(self, size: int) -> int:
        self._left -= size
        if self._left < 0:
            raise ConnectionError(f"the answer is larger than {MOST_BYTES} bytes")
        return size


def _bounded(kind: type[redis.Connection]) -> type[redis.Connection]:
    class Bounded(kind):  # type: ignore[misc, valid-type]
        def _connect(self) -> BoundedSocket:
            return BoundedSocket(super()._connect(), self.socket_timeout)

    return Bounded
