"""Edge: the pages of a relay over HTTP: /healthz, /readyz, /metrics, /status and /pending."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from delaytopic_api.relay import PendingList, RelayStatus
from delaytopic_process.pages import JSON, PROMETHEUS, Answer, CannotListen, Health, Pages, health_answer, text_answer
from delaytopic_relay.errors import BadRequest, ConfigurationError, Unavailable

RETRY_AFTER_S = 5

__all__ = ["Health", "PageServer"]


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
    ) -> None:
        """`port` 0 takes any free one. The callables are called in the server's threads, and should be quick.

        `pending` gets what stands behind the question mark, and may raise `BadRequest` and `Unavailable`.
        """
        pages = {
            "/healthz": lambda _: health_answer(health()),
            "/readyz": lambda _: health_answer(readiness()),
            "/metrics": lambda _: Answer(HTTPStatus.OK, PROMETHEUS, metrics()),
            "/status": lambda _: Answer(HTTPStatus.OK, JSON, status().to_json().encode()),
            "/pending": lambda parameters: _of_list(pending, parameters),
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


def _of_list(pending: Callable[[str], PendingList], parameters: str) -> Answer:
    try:
        return Answer(HTTPStatus.OK, JSON, pending(parameters).to_json().encode())
    except BadRequest as error:
        return text_answer(HTTPStatus.BAD_REQUEST, str(error))
    except Unavailable as error:
        return text_answer(HTTPStatus.SERVICE_UNAVAILABLE, str(error))._replace(retry_after_s=RETRY_AFTER_S)
