"""Edge: reads what relays and audits say of themselves, in parallel, within a deadline.

A pod may be a tenant's: whatever it answers costs a bounded time, connections of its own and a bounded memory.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from threading import Lock
from time import monotonic
from typing import Any, Final

from pydantic import ValidationError

from delaytopic_api import RelayStatus
from delaytopic_api.relay import FOR_OPERATOR
from delaytopic_operator.observe.fleet import RelayPage

DEFAULT_PORT: Final = 8080
STATUS: Final = f"/status?{FOR_OPERATOR}"
MOST_BYTES: Final = 8 << 20
"""Of all pages of one DelayTopic, whose relays divide its partitions, 10,000 at most: one of them takes 220 bytes, and
620 with former rules and what keeps it from going on.
"""
MOST_VALUES: Final = 240_000
"""In all these pages: each is an object in memory, however short it is written. A partition has 8 to 20."""
MOST_AT_ONCE: Final = 8
"""Of one DelayTopic; its pods must not take the threads of others."""
CHUNK_BYTES: Final = 1 << 16
LATE_SECONDS: Final = 1.0
"""The time after the deadline at which a connection that does not come about is given up; others are ended at once."""

Document = dict[str, Any]


class RelayPages:
    """Thread-safe; all reconciliations share the threads."""

    def __init__(self, at_once: int = 32) -> None:
        """Read `at_once` pages at the same time; others wait."""
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="relay-pages")

    def read(self, pods: Sequence[Document], deadline_s: float) -> list[RelayPage]:
        """Read the page of each pod, in their order; never raises, and answers within the deadline."""
        late = f"did not answer within {deadline_s:g} s"
        pages = [RelayPage(pod["metadata"]["name"], None, late) for pod in pods]
        reading = _Reading(monotonic() + deadline_s)
        open_ones: dict[Future[RelayPage], int] = {}
        for place, pod in enumerate(pods):
            address = page_address(pod)
            if address is None:
                pages[place] = RelayPage(pages[place].pod, None, "has no address yet")
                continue
            while len(open_ones) >= MOST_AT_ONCE and not reading.is_over:
                _take(open_ones, pages, reading)
            if not reading.is_over:
                open_ones[self._threads.submit(reading.page, pages[place].pod, address)] = place
        while open_ones and not reading.is_over:
            _take(open_ones, pages, reading)
        reading.end()
        for read in open_ones:
            read.cancel()
        return pages

    def fetch(self, pod: Mapping[str, Any], path: str, deadline_s: float) -> bytes | None:
        """Return another page of one pod; None where it does not come within the deadline."""
        address = page_address(pod)
        if address is None:
            return None
        reading = _Reading(monotonic() + deadline_s)
        read = self._threads.submit(reading.data, address, path)
        wait([read], deadline_s)
        reading.end()
        read.cancel()
        try:
            return read.result(0) if read.done() else None
        except (OSError, HTTPException, ValueError, CancelledError):
            return None

    def close(self) -> None:
        """Read no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Reading:
    """The pages of one DelayTopic; thread-safe."""

    def __init__(self, ends: float) -> None:
        self._ends = ends
        self._lock = Lock()
        self._sockets: set[socket.socket] = set()
        self._bytes = 0
        self._values = 0
        self._ended = False

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    @property
    def left_s(self) -> float:
        return self._ends - monotonic()

    def end(self) -> None:
        """Wake whoever still reads: a server that sends a byte now and then would hold a thread for ever."""
        with self._lock:
            self._ended = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def page(self, name: str, address: str) -> RelayPage:
        try:
            return RelayPage(name, self._status(address), None)
        except (OSError, HTTPException) as error:
            return RelayPage(name, None, f"cannot be reached at {address}: {type(error).__name__}")
        except ValidationError as error:
            problems = error.error_count()
            return RelayPage(name, None, f"answers something else than a relay's status ({problems} problems)")
        except ValueError as error:
            return RelayPage(name, None, str(error))

    def _status(self, address: str) -> RelayStatus:
        return RelayStatus.model_validate_json(self.data(address, STATUS), by_alias=True, by_name=False)

    def data(self, address: str, path: str) -> bytes:
        connection = HTTPConnection(address.removeprefix("http://"), timeout=max(0.0, self.left_s) + LATE_SECONDS)
        of: socket.socket | None = None
        try:
            connection.connect()
            of = connection.sock
            self._add(of)
            connection.request("GET", path, headers={"Connection": "close", "Accept-Encoding": "identity"})
            # The connection ends with its answer, which holds the socket from now on.
            with connection.getresponse() as response:
                if response.status != 200:
                    raise ValueError(f"answers {response.status}")
                data = bytearray()
                while chunk := response.read1(CHUNK_BYTES):
                    data += chunk
                    self._count(chunk)
                return bytes(data)
        finally:
            self._remove(of)
            connection.close()

    def _count(self, chunk: bytes) -> None:
        with self._lock:
            self._bytes += len(chunk)
            self._values += chunk.count(b",")
            if self._bytes > MOST_BYTES or self._values > MOST_VALUES:
                raise ValueError(f"answers, with other relays, more than {MOST_BYTES} bytes or {MOST_VALUES} values")

    def _add(self, of: socket.socket) -> None:
        with self._lock:
            if self._ended:
                raise TimeoutError
            self._sockets.add(of)

    def _remove(self, of: socket.socket | None) -> None:
        with self._lock:
            self._sockets -= {of}


def _take(open_ones: dict[Future[RelayPage], int], pages: list[RelayPage], reading: _Reading) -> None:
    """Wait for one of them at least, until the end at most."""
    for done in wait(open_ones, max(0.0, reading.left_s), return_when=FIRST_COMPLETED).done:
        pages[open_ones.pop(done)] = done.result()


def page_address(pod: Mapping[str, Any]) -> str | None:
    """Return `http://10.1.2.3:8080` of a pod that has an address and is not ended; else None."""
    status = pod.get("status") or {}
    address = status.get("podIP")
    if not address or status.get("phase") in {"Succeeded", "Failed"}:
        return None
    ports = [port for container in pod["spec"].get("containers", []) for port in container.get("ports") or []]
    port = next((port["containerPort"] for port in ports if port.get("name") == "http"), DEFAULT_PORT)
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
