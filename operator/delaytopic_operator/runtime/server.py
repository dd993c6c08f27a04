"""Edge: the operator's pages over HTTP: /livez, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from delaytopic_operator.errors import ConfigurationError
from delaytopic_operator.runtime.health import Health
from delaytopic_process import pages as process
from delaytopic_process.pages import PROMETHEUS, Answer, CannotListen, Page, Pages, health_answer


def health_page(health: Callable[[], Health]) -> Page:
    """200 or 503, and the reason."""
    return lambda _: health_answer(process.Health(*health()))


def metrics_page(render: Callable[[], bytes]) -> Page:
    """Prometheus' text format."""
    return lambda _: Answer(HTTPStatus.OK, PROMETHEUS, render())


class PageServer(Pages):
    """Serves pages between `start` and `stop`."""

    def __init__(self, port: int, pages: Mapping[str, Page], host: str = "") -> None:
        """`pages` by path; `port` 0 takes any free one; without a host, all addresses."""
        super().__init__("delaytopic-operator", host, port, pages)

    def start(self) -> None:
        """Listen; raises `ConfigurationError` when that is not possible."""
        try:
            super().start()
        except CannotListen as error:
            raise ConfigurationError(
                f"httpPort: cannot listen on port {self._address[1]}: {error}; choose another, or 0 for any free one"
            ) from error
