"""Edge: the pages of a relay over HTTP, from a thread of their own: /healthz, /readyz, /metrics and /status."""

from __future__ import annotations

import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import Any, NamedTuple

import structlog

from delaytopic_api.relay_status import RelayStatus
from delaytopic_relay.errors import ConfigurationError

TEXT = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
JSON = "application/json"

SLOW_CLIENT_SECONDS = 5
STOP_POLL_SECONDS = 0.1

log = structlog.get_logger()


class Health(NamedTuple):
    """Whether something is as it should be, and why, in a few words."""

    ok: bool
    reason: str


class Answer(NamedTuple):
    """What one request gets."""

    status: HTTPStatus
    content_type: str
    body: bytes


class PageServer:
    """Serves the pages between `start` and `stop`; everything it shows comes from the callables it is given."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        health: Callable[[], Health],
        readiness: Callable[[], Health],
        metrics: Callable[[], bytes],
        status: Callable[[], RelayStatus],
    ) -> None:
        """`port` 0 takes any free one. The callables are called in the server's threads, and should be quick."""
        self._address = (host, port)
        self._server: _Server | None = None
        self._thread: Thread | None = None
        self._pages: dict[str, Callable[[], Answer]] = {
            "/healthz": lambda: _of_health(health()),
            "/readyz": lambda: _of_health(readiness()),
            "/metrics": lambda: Answer(HTTPStatus.OK, PROMETHEUS, metrics()),
            "/status": lambda: Answer(HTTPStatus.OK, JSON, status().to_json().encode()),
        }

    def start(self) -> None:
        """Listen; raises `ConfigurationError` when that is not possible."""
        try:
            self._server = _Server(self._address, self.answer)
        except (OSError, OverflowError) as error:
            host, port = self._address
            raise ConfigurationError(
                f"http: cannot listen on host {host!r}, port {port}: {error}; choose others, or port 0 for any free one"
            ) from error
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

    def answer(self, path: str) -> Answer:
        """The page for a path; a page that fails says so, and leaves the server standing."""
        page = self._pages.get(path)
        if page is None:
            return _text(HTTPStatus.NOT_FOUND, f"no such page; there are {', '.join(self._pages)}")
        try:
            return page()
        except Exception as error:
            log.exception("page failed", path=path)
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: see the log")


class _Server(ThreadingHTTPServer):
    """One thread a request; they are daemons, so that a slow client does not keep the process alive."""

    def __init__(self, address: tuple[str, int], answer: Callable[[str], Answer]) -> None:
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
    server_version = "delaytopic-relay"
    sys_version = ""
    timeout = SLOW_CLIENT_SECONDS

    def do_GET(self) -> None:
        answer = self.server.answer(self.path.partition("?")[0])
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: probes and scrapes would drown the log."""


def _of_health(health: Health) -> Answer:
    return _text(HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE, health.reason)


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, TEXT, f"{text}\n".encode())
