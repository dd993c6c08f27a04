"""Edge: connections that do not stay with clients who neither ask nor read."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 10.0
"""The longest time that the head of a request may take to arrive, from the beginning of the connection on."""
READ_S: Final = 30.0
"""The longest time that a client may take to read what waits for it; mostly less than a MiB, and 64 KiB go at once."""
BUFFER_BYTES: Final = 128 << 10
"""The part of an answer that the kernel keeps: it counts as this process's, and may be megabytes by itself."""


class Connection(H11Protocol):
    """A connection of uvicorn with deadlines, of which it has but one: for silence between two requests."""

    _head: asyncio.TimerHandle | None = None
    _reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._socket: socket.socket = transport.get_extra_info("socket")
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take what has come; a head that has begun has to end."""
        super().data_received(data)
        self._await_head()

    def pause_writing(self) -> None:
        """Begin to wait for the reader."""
        super().pause_writing()
        self._reader = self.loop.call_later(READ_S, self._hang_up)

    def resume_writing(self) -> None:
        """Wait no more."""
        super().resume_writing()
        self._stop("_reader")

    def on_response_complete(self) -> None:
        """Begin to wait for the next head, or for the end of a connection that has no more."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._end_soon()
        else:
            self._await_head()

    def timeout_keep_alive_handler(self) -> None:
        """Close a silent connection, and do not wait for long until it has read the last answer."""
        super().timeout_keep_alive_handler()
        self._end_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        super().connection_lost(exc)
        self._stop("_head")
        self._stop("_reader")

    def _await_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop("_head")
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_S, self._hang_up)

    def _end_soon(self) -> None:
        if self._reader is None:
            self._reader = self.loop.call_later(READ_S, self._hang_up)

    def _hang_up(self) -> None:
        # Without a lingering end: the kernel would keep what was not read.
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _stop(self, name: str) -> None:
        timer: asyncio.TimerHandle | None = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)
