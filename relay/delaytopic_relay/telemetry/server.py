"""Edge: the pages of a relay over HTTP: /healthz, /readyz, /metrics, /status and /pending."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address

from delaytopic_api.relay import FOR_OPERATOR, PendingList, RelayStatus
from delaytopic_api.values import PendingAccess
from delaytopic_process.pages import (
    JSON,
    PROMETHEUS,
    Answer,
    CannotListen,
    Health,
    Pages,
    Request,
    health_answer,
    text_answer,
)
from delaytopic_relay.errors import BadRequest, ConfigurationError, Unavailable

RETRY_AFTER_S = 5
NOT_FROM_HERE = (
    "the list of what is pending is for clients at a loopback address: use kubectl delaytopic pending, or kubectl "
    "port-forward and localhost; the gateway shows the token whose SHA-256 is http.pendingTokenSha256; a relay outside "
    "Kubernetes may be set to http.pending: Anywhere"
)

__all__ = ["Health", "PageServer", "Readers"]


@dataclass(frozen=True, slots=True)
class Readers:
    """The clients that may read what is pending."""

    access: PendingAccess = PendingAccess.LOOPBACK
    token_sha256: str | None = None
    """The digest of a token that lets its bearer in, too."""

    def includes(self, request: Request) -> bool:
        """Tell whether whoever sent the request is one of them."""
        return self.access is PendingAccess.ANYWHERE or is_loopback(request.client) or self._knows(request)

    def _knows(self, request: Request) -> bool:
        scheme, _, token = request.authorization.partition(" ")
        if self.token_sha256 is None or scheme.lower() != "bearer":
            return False
        digest = sha256(token.strip().encode("utf-8", "surrogateescape")).hexdigest()
        return hmac.compare_digest(digest, self.token_sha256)


class PageServer(Pages):
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
        pending: Callable[[str], PendingList],
        readers: Readers = Readers(),
    ) -> None:
        """`port` 0 takes any free one. The callables are called in the server's threads, and should be quick.

        `pending` gets what stands behind the question mark, and may raise `BadRequest` and `Unavailable`. It is called
        for `readers` alone.
        """
        pages = {
            "/healthz": lambda _: health_answer(health()),
            "/readyz": lambda _: health_answer(readiness()),
            "/metrics": lambda _: Answer(HTTPStatus.OK, PROMETHEUS, metrics()),
            "/status": lambda request: _of_status(status(), request),
            "/pending": lambda request: _of_list(pending, readers, request),
        }
        super().__init__("delaytopic-relay", host, port, pages)

    def start(self) -> None:
        """Listen; raises `ConfigurationError` when that is not possible."""
        try:
            super().start()
        except CannotListen as error:
            host, port = self._address
            raise ConfigurationError(
                f"http: cannot listen on host {host!r}, port {port}: {error}; choose others, or port 0 for any free one"
            ) from error


def is_loopback(client: str) -> bool:
    """Tell whether a client's IP address is one of its own machine. Pure."""
    try:
        address = ip_address(client)
    except ValueError:
        return False
    # A socket of both families names clients of IPv4 so; not every Python calls such an address a loopback one.
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def _of_status(status: RelayStatus, request: Request) -> Answer:
    is_for_operator = request.parameters == FOR_OPERATOR
    return Answer(HTTPStatus.OK, JSON, (status.to_operator_json() if is_for_operator else status.to_json()).encode())


def _of_list(pending: Callable[[str], PendingList], readers: Readers, request: Request) -> Answer:
    if not readers.includes(request):
        return text_answer(HTTPStatus.FORBIDDEN, NOT_FROM_HERE)
    try:
        return Answer(HTTPStatus.OK, JSON, pending(request.parameters).to_json().encode())
    except BadRequest as error:
        return text_answer(HTTPStatus.BAD_REQUEST, str(error))
    except Unavailable as error:
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))._replace(retry_after_s=RETRY_AFTER_S)
