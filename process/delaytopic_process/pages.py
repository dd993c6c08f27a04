"""Edge: pages over HTTP, from threads of their own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any, Final, NamedTuple

import structlog

TEXT: Final = "text/plain; charset=utf-8"
PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
JSON: Final = "application/json"

SLOW_CLIENT_SECONDS: Final = 5
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


class _Server(ThreadingHTTPServer):
    """One thread a request; they are daemons, so that a slow client does not keep the process alive."""

    def __init__(self, address: tuple[str, int], program: str, answer: Callable[[str, str, str], Answer]) -> None:
        self.program = program
        self.answer = answer
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        # Without the base class's reverse lookup of the host, which may take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that went away; anything that a page does wrong was answered and logged already.
        log.debug("http client gone", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = SLOW_CLIENT_SECONDS

    def version_string(self) -> str:
        return self.server.program

    def do_GET(self) -> None:
        given = self.headers.get_all("Authorization") or []
        authorization = given[0] if len(given) == 1 else ""
        answer = self.server.answer(self.path, self.client_address[0], authorization)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        if answer.retry_after_s is not None:
            self.send_header("Retry-After", str(answer.retry_after_s))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes and scrapes would drown the log."""
