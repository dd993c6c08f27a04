"""Edge: the operator's pages over HTTP: /livez, /readyz and /metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple

from delaytopic_operator.errors import ConfigurationError
from delaytopic_operator.model.kinds import Place
from delaytopic_process import pages as process
from delaytopic_process.pages import PROMETHEUS, Answer, CannotListen, Page, Pages, health_answer

LONGEST_LAG_MS: Final = 300_000
"""The longest lag of the event loop of the watches: it hangs, or could not be started for so long, say for want of a
valid login."""
LONGEST_SILENCE_MS: Final = 600_000
"""The longest silence of one watch, while the API server answers otherwise; a watch that is well gives a sign every 4
minutes."""
LONGEST_UNREACHABLE_MS: Final = 60_000


class Health(NamedTuple):
    """The health of a part, and the reason in a few words."""

    ok: bool
    reason: str


def liveness(
    loop_lag_ms: int, signs_of_life_ms: Mapping[Place, int], api_server_answered_ms: int, now_ms: int
) -> Health:
    """Return whether the operator is well; where it is not, only a new process helps. Times are epoch ms.

    While the API server itself does not answer, silence means nothing, and a new process would help nobody.
    """
    if now_ms - api_server_answered_ms > LONGEST_UNREACHABLE_MS:
        return Health(True, "alive; the API server does not answer")
    if loop_lag_ms > LONGEST_LAG_MS:
        return Health(False, f"the event loop of the watches hangs since {loop_lag_ms // 1_000} s")
    silent = {
        str(name): now_ms - at_ms for name, at_ms in signs_of_life_ms.items() if now_ms - at_ms > LONGEST_SILENCE_MS
    }
    if silent:
        said = ", ".join(f"{name} ({silence_ms // 1_000} s)" for name, silence_ms in sorted(silent.items()))
        return Health(False, f"watches are silent: {said}")
    return Health(True, "alive")


def readiness(resynced_ms: int, is_leader: bool, stopping: bool) -> Health:
    """Ready: everything was listed once, and this operator leads, or would if the leader went."""
    if stopping:
        return Health(False, "stopping")
    if resynced_ms == 0:
        return Health(False, "the first look at the cluster is not done")
    return Health(True, "leader" if is_leader else "standby")


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
