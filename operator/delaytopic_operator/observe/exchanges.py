"""Edge: requests to pods, many at once over connections that are kept, and their answers, within a deadline.

A pod may be a tenant's: whatever it answers costs a bounded time, connections of its own and a bounded memory. Whoever
asks waits for all of its pods at once, in no other thread: thousands of pages come in every few seconds, and a thread
and http.client's headers cost more than a page. So does a new connection: each stays for the next page of its pod.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from errno import EINPROGRESS
from http.client import BadStatusLine, HTTPException, HTTPResponse, IncompleteRead, RemoteDisconnected
from io import BytesIO
from resource import RLIMIT_NOFILE, getrlimit
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple, TypeVar, cast

Place = TypeVar("Place", bound=Hashable)

KEPT_S: Final = 45.0
"""The time that a connection waits for the next question: less than what relays wait for one. By then, one to a pod
that is gone is closed, too."""
MOST_KEPT: Final = 8_192
"""The connections that wait at once, and no more than half of the files that this process may open."""
CHUNK_BYTES: Final = 1 << 16
HEAD_ENDS: Final = b"\r\n\r\n"
_FIRST_LINE: Final = re.compile(rb"(?P<version>http/1\.\d) (?P<code>\d{3})")
_FIELDS: Final = re.compile(rb"\r\n(content-length|transfer-encoding|connection)[ \t]*:([^\r\n]*)")
"""The fields of a head in small letters that say how its body ends. No head makes them take longer than its length
says."""


class Peer(NamedTuple):
    """A pod that is asked; another one may have had its address before."""

    pod: str
    address: str

    @property
    def place(self) -> str:
        """Return the address as the header Host has it."""
        return self.address.removeprefix("http://")


class Limits:
    """The bounds of all answers that are read together."""

    def __init__(self, most_bytes: int, most_values: int) -> None:
        self._most_bytes = most_bytes
        self._most_values = most_values
        self._bytes = 0
        self._values = 0

    def count(self, chunk: bytes) -> None:
        """Raise ValueError where it is too much."""
        self._bytes += len(chunk)
        self._values += chunk.count(b",")
        if self._bytes > self._most_bytes or self._values > self._most_values:
            raise ValueError(
                f"answers, with other relays, more than {self._most_bytes} bytes or {self._most_values} values"
            )


class Question(NamedTuple):
    """A pod that is asked, and the bounds that its answer shares with others."""

    of: Peer
    limits: Limits


Answer = bytes | OSError | HTTPException | ValueError
"""The body of an answer, or why there is none."""


class Exchanges:
    """Requests to pods. Thread-safe."""

    def __init__(self) -> None:
        self._kept = _Kept(min(MOST_KEPT, getrlimit(RLIMIT_NOFILE)[0] // 2))

    def close(self) -> None:
        """Close the connections that wait for the next question."""
        self._kept.close()

    def answers(
        self, asked: Mapping[Place, Question], path: str, ends_s: float, at_once: int
    ) -> Iterator[tuple[Place, Answer]]:
        """Ask each pod for a path, so many at once; yield the answers as they come, until the end at most."""
        waiting = deque(asked.items())
        exchanges: dict[Place, _Exchange] = {}
        again: set[Place] = set()
        """Those that ended the connection of before, and are asked over a new one."""
        # For some sockets that are waited for for a moment, poll takes half the system calls of epoll.
        with selectors.PollSelector() as selector:
            try:
                while (waiting or exchanges) and (left_s := ends_s - monotonic()) > 0:
                    begun = [waiting.popleft() for _ in range(min(len(waiting), at_once - len(exchanges)))]
                    for place, question in begun:
                        kept = self._kept.take(question.of) if place not in again else None
                        try:
                            exchanges[place] = _Exchange(question, path, kept)
                        except OSError as error:  # this process has no file left
                            yield place, error
                            continue
                        selector.register(exchanges[place].socket, exchanges[place].awaits, place)
                    for key, _ in selector.select(left_s):
                        place, exchange = key.data, exchanges[key.data]
                        answer = exchange.advance()
                        if answer is None:
                            if key.events != exchange.awaits:
                                selector.modify(key.fileobj, exchange.awaits, place)
                            continue
                        selector.unregister(key.fileobj)
                        del exchanges[place]
                        if exchange.can_go_on:
                            self._kept.give(asked[place].of, exchange.socket)
                        else:
                            exchange.socket.close()
                        if exchange.was_too_late:
                            again.add(place)
                            waiting.append((place, asked[place]))
                        else:
                            yield place, answer
            finally:
                for each in exchanges.values():
                    each.socket.close()


class _Kept:
    """Connections whose last answer came whole, those that have waited for longest first. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._waiting: dict[Peer, tuple[float, socket.socket]] = {}

    def take(self, peer: Peer) -> socket.socket | None:
        """Return the connection to a pod, which is then the caller's; None where there is none that can be used."""
        with self._lock:
            since_s, connection = self._waiting.pop(peer, (0.0, None))
        if connection is None or (monotonic() - since_s < KEPT_S and _is_silent(connection)):
            return connection
        connection.close()
        return None

    def give(self, peer: Peer, connection: socket.socket) -> None:
        """Take a connection over, and close those that nobody has used for long."""
        now_s = monotonic()
        with self._lock:
            ended = self._pop_unused(now_s - KEPT_S)
            if peer in self._waiting or len(self._waiting) >= self._most:
                ended.append(connection)
            else:
                self._waiting[peer] = (now_s, connection)
        for each in ended:
            each.close()

    def close(self) -> None:
        """Close all."""
        with self._lock:
            ended = [connection for _, connection in self._waiting.values()]
            self._waiting.clear()
        for each in ended:
            each.close()

    def _pop_unused(self, before_s: float) -> list[socket.socket]:
        unused = []
        while self._waiting:
            peer, (since_s, connection) = next(iter(self._waiting.items()))
            if since_s > before_s:
                break
            del self._waiting[peer]
            unused.append(connection)
        return unused


def _is_silent(connection: socket.socket) -> bool:
    """Tell whether nothing has come since the last answer: neither its end, nor what nobody has asked for."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class _Head(NamedTuple):
    """The length and the form of a body, as the first lines of an answer tell them."""

    body_at: int
    length: int | None
    """The length of the body; None: it ends with the connection."""
    is_plain: bool
    """False where the body comes in chunks."""
    keeps: bool
    """True if the connection stays for another request."""


class _Exchange:
    """A request over a connection that is only its own, and the answer as far as it has come."""

    def __init__(self, question: Question, path: str, kept: socket.socket | None) -> None:
        """Take a connection over that is there, or begin one. Raises OSError where this process has no file left."""
        peer, self._limits = question
        self._request = f"GET {path} HTTP/1.1\r\nHost: {peer.place}\r\nAccept-Encoding: identity\r\n\r\n".encode()
        self._data = bytearray()
        self._head: _Head | None = None
        self._is_of_before = kept is not None
        self._failed = 0
        self.can_go_on = False
        """True once the answer has come whole, and another request may follow it."""
        if kept is not None:
            self.socket = kept
            self._ask_at_once()
            return
        host, _, port = peer.place.rpartition(":")
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._failed = self.socket.connect_ex((host.strip("[]"), int(port)))

    @property
    def awaits(self) -> int:
        """The event with which it goes on."""
        return selectors.EVENT_WRITE if self._request else selectors.EVENT_READ

    @property
    def was_too_late(self) -> bool:
        """True if the connection was one of before, and ended without a word of the answer."""
        return self._is_of_before and self._head is None and not self._data

    def advance(self) -> Answer | None:
        """Go on, now that the connection is ready for it; return the answer once there is one."""
        try:
            if not self._request:
                return self._receive()
            self._send()
            return None
        except (OSError, HTTPException, ValueError) as error:
            return error

    def _ask_at_once(self) -> None:
        with suppress(OSError):  # it shows when the answer is read
            self.socket.sendall(self._request)
        self._request = b""

    def _send(self) -> None:
        failed = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        failed = failed or (self._failed if self._failed != EINPROGRESS else 0)
        if failed:
            raise OSError(failed, os.strerror(failed))
        # The buffer of a connection on which nothing is under way holds more than a few lines.
        self.socket.sendall(self._request)
        self._request = b""

    def _receive(self) -> bytes | None:
        chunk = self.socket.recv(CHUNK_BYTES)
        self._limits.count(chunk)
        self._data += chunk
        self._head = self._head or _head_of(self._data)
        if self._head is None:
            if not chunk:
                raise RemoteDisconnected("the connection ended before the head of the answer did")
            return None
        body_at, length, is_plain, keeps = self._head
        if length is not None and len(self._data) >= body_at + length:
            self.can_go_on = keeps and len(self._data) == body_at + length
            return bytes(self._data[body_at : body_at + length])
        if chunk:
            return None
        if length is not None:
            raise IncompleteRead(b"", body_at + length - len(self._data))
        return bytes(self._data[body_at:]) if is_plain else _dechunked(self._data)


def _head_of(data: bytearray) -> _Head | None:
    """Read the head of an answer; None while it has not come whole. Raises ValueError where it is no page."""
    ends = data.find(HEAD_ENDS)
    if ends < 0:
        if len(data) > CHUNK_BYTES:
            raise BadStatusLine("the head of the answer does not end")
        return None
    head = bytes(data[:ends]).lower()
    first = _FIRST_LINE.match(head)
    if first is None:
        raise BadStatusLine(repr(head.partition(b"\r\n")[0]))
    if first["code"] != b"200":
        raise ValueError(f"answers {int(first['code'])}")
    fields = {name: value.strip() for name, value in _FIELDS.findall(head)}
    body_at, is_plain = ends + len(HEAD_ENDS), fields.get(b"transfer-encoding", b"identity") == b"identity"
    length = fields.get(b"content-length", b"")
    keeps = first["version"] == b"http/1.1" and b"close" not in fields.get(b"connection", b"")
    return _Head(body_at, int(length) if is_plain and length.isdigit() else None, is_plain, keeps)


class _Received(NamedTuple):
    """A whole answer, as http.client reads it from a socket."""

    data: bytes

    def makefile(self, _: str) -> BytesIO:
        return BytesIO(self.data)


def _dechunked(data: bytearray) -> bytes:
    """Return the body of an answer in chunks, as proxies write them; raises HTTPException."""
    response = HTTPResponse(cast(socket.socket, _Received(bytes(data))))
    response.begin()
    return response.read()
