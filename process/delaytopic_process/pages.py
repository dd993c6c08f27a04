"""Edge: pages over HTTP, from threads of their own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from socketserver import TCPServer
from threading import Lock, Thread
from typing import Any, Final, NamedTuple

import structlog

TEXT: Final = "text/plain; charset=utf-8"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
JSON: Final = "application/json"

SLOW_CLIENT_SECONDS: Final = 5
"""The time that a client has for its first request, and to go on with each one that it began."""
SILENT_SECONDS: Final = 60
"""The time that a connection is silent after an answer before it is ended: longer than most clients take between two
questions, such as an operator that looks at its relays, or Prometheus."""
MOST_CONNECTIONS: Final = 64
"""The connections at once, each of which has a thread. A further one ends the one that has waited for longest."""
STOP_POLL_SECONDS: Final = 0.1

log = structlog.get_logger()


class Health(NamedTuple):
    """A verdict on health, with its reason in a few words."""

    ok: bool
    reason: str


class Answer(NamedTuple):
    """The answer to one request."""

    status: HTTPStatus
    content_type: str
    body: bytes
    retry_after_s: int | None = None
    """The time after which to ask again, for an answer that cannot be given now."""


class CannotListen(Exception):
    """The address is taken, or is none; the text is the system's."""


class Request(NamedTuple):
    """A request for one page."""

    parameters: str
    """The part of the address behind the question mark."""
    client: str
    """The IP address of whoever asks, as the connection has it."""
    authorization: str = ""
    """The header Authorization; empty for none, and for several."""


Page = Callable[[Request], Answer]


def text_answer(status: HTTPStatus, text: str) -> Answer:
    """A line of text."""
    return Answer(status, TEXT, f"{text}\n".encode())


def health_answer(health: Health) -> Answer:
    """200 or 503, and the reason."""
    return text_answer(HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE, health.reason)


class Pages:
    """Serves pages between `start` and `stop`; they are made in the server's threads, and should be quick."""

    def __init__(self, program: str, host: str, port: int, pages: Mapping[str, Page]) -> None:
        """`pages` by path; `port` 0 takes any free one; without a host, all addresses."""
        self._program = program
        self._address = (host, port)
        self._pages = {**pages}
        self._server: _Server | None = None
        self._thread: Thread | None = None

    def add(self, path: str, page: Page) -> None:
        """Serve one more page."""
        self._pages[path] = page

    def start(self) -> None:
        """Listen; raises `CannotListen`."""
        try:
            self._server = _Server(self._address, self._program, self.answer)
        except (OSError, OverflowError) as error:
            raise CannotListen(str(error)) from error
        self._thread = Thread(target=self._server.serve_forever, args=(STOP_POLL_SECONDS,), name="http", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Listen no more; does nothing when not listening."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = self._thread = None

    @property
    def port(self) -> int:
        """The port it listens on, or the one asked for while it does not."""
        return self._server.server_port if self._server is not None else self._address[1]

    def answer(self, target: str, client: str, authorization: str = "") -> Answer:
        """The page for a path with its parameters; a page that fails says so, and leaves the server standing.

        `client` and `authorization` are as in a `Request`.
        """
        path, _, parameters = target.partition("?")
        page = self._pages.get(path)
        if page is None:
            return text_answer(HTTPStatus.NOT_FOUND, f"no such page; there are {', '.join(self._pages)}")
        try:
            return page(Request(parameters, client, authorization))
        except Exception as error:
            log.exception("page failed", path=path)
            return text_answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: see the log")


class _Connections:
    """The connections that are open, in order of how long each has had no request to answer. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[socket.socket, None] = {}
        self._answering: dict[socket.socket, None] = {}
        self._stopped = False

    def add(self, connection: socket.socket) -> None:
        """Take one more; where there are too many, one ends that is not being answered, if there is any."""
        with self._lock:
            if len(self._waiting) + len(self._answering) >= MOST_CONNECTIONS:
                _end(self._forget_first(self._waiting or self._answering))
            self._waiting[connection] = None

    def has_asked(self, connection: socket.socket) -> None:
        """Note that a request is there whole."""
        with self._lock:
            if connection in self._waiting:
                del self._waiting[connection]
                self._answering[connection] = None

    def is_answered(self, connection: socket.socket) -> bool:
        """Note that it was answered; return whether it may ask again."""
        with self._lock:
            if connection not in self._answering or self._stopped:
                return False
            del self._answering[connection]
            self._waiting[connection] = None
            return True

    def remove(self, connection: socket.socket) -> None:
        """Forget one that has ended."""
        with self._lock:
            self._waiting.pop(connection, None)
            self._answering.pop(connection, None)

    def stop(self) -> None:
        """End all that wait; those that are being answered end with the answer."""
        with self._lock:
            self._stopped = True
            for each in self._waiting:
                _end(each)

    @staticmethod
    def _forget_first(connections: dict[socket.socket, None]) -> socket.socket:
        first = next(iter(connections))
        del connections[first]
        return first


def _end(connection: socket.socket) -> None:
    """Let the thread of a connection find its end, whether it reads or writes."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    """One thread a connection; they are daemons, so that a slow client does not keep the process alive."""

    def __init__(self, address: tuple[str, int], program: str, answer: Callable[[str, str, str], Answer]) -> None:
        self.program = program
        self.answer = answer
        self.connections = _Connections()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Without the base class's reverse lookup of the host, which may take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.remove(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        self.connections.stop()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that went away; anything that a page does wrong was answered and logged already.
        log.debug("http client gone", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    connection: socket.socket
    rfile: BufferedReader
    protocol_version = "HTTP/1.1"
    timeout = SLOW_CLIENT_SECONDS
    wbufsize = -1  # The head and a page that is no longer than it go out at once.
    disable_nagle_algorithm = True

    def version_string(self) -> str:
        return self.server.program

    def handle(self) -> None:
        self.close_connection = True
        self.handle_one_request()
        while not self.close_connection and self._is_asked_again():
            self.handle_one_request()

    def _is_asked_again(self) -> bool:
        """Wait for another request; return whether one has begun."""
        self.connection.settimeout(SILENT_SECONDS)
        try:
            has_begun = bool(self.rfile.peek(1))
        except OSError:  # the client was silent for too long, or is gone
            return False
        self.connection.settimeout(SLOW_CLIENT_SECONDS)
        return has_begun

    def do_GET(self) -> None:
        self.server.connections.has_asked(self.connection)
        # No page has a use for a body, which would be read as another request.
        has_body = "Transfer-Encoding" in self.headers or {*self.headers.get_all("Content-Length", [])} - {"0"}
        is_last = self.close_connection or has_body or self.request_version < self.protocol_version
        given = self.headers.get_all("Authorization") or []
        authorization = given[0] if len(given) == 1 else ""
        answer = self.server.answer(self.path, self.client_address[0], authorization)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        if answer.retry_after_s is not None:
            self.send_header("Retry-After", str(answer.retry_after_s))
        if is_last:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()
        if not self.server.connections.is_answered(self.connection):
            self.close_connection = True

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes and scrapes would drown the log."""
