from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.gateway.gateway import Scene, gateway_over

from delaytopic_gateway.access.rights import LoopbackAccess
from delaytopic_gateway.app import gateway_app
from delaytopic_gateway.documents import Advance
from delaytopic_gateway.reach.rest import GatewayClient
from delaytopic_gateway.server import serving
from delaytopic_gateway.service.clock import Reading
from delaytopic_gateway.service.gateway import Gateway
from delaytopic_process.errors import InputError

HOUR_MS = 3_600_000


class Clock:
    """Implements `MovableClock`."""

    shift_ms = 0

    def read(self) -> Reading:
        return Reading(1_000 + self.shift_ms, self.shift_ms)

    def advance(self, duration_ms: int) -> Reading:
        self.shift_ms += duration_ms
        return self.read()


@pytest.fixture
def url() -> Iterator[str]:
    scene = Scene()
    gateway = Gateway(scene, scene, scene.ask, lambda: 0)
    with serving(gateway_app(gateway, LoopbackAccess(), scene.audit.append, clock=Clock())) as url:
        yield url


def test_a_clock_is_moved_by_a_duration_and_read(url: str) -> None:
    client = GatewayClient(url)

    moved = client.ask("POST", "/v1/clock", {"advance": "7d"})

    assert moved == client.ask("GET", "/v1/clock") == {"nowMs": 1_000 + 168 * HOUR_MS, "shiftMs": 168 * HOUR_MS}


def test_a_move_that_is_no_duration_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="is not a duration"):
        GatewayClient(url).ask("POST", "/v1/clock", {"advance": "tomorrow"})


@pytest.mark.parametrize(("text", "hours"), [("7d", 168), ("1w", 168), ("1d12h", 36), ("2w1d30m", 360.5), ("90m", 1.5)])
def test_a_move_may_have_days_and_weeks(text: str, hours: float) -> None:
    assert Advance(advance=text).duration_ms == hours * HOUR_MS


@pytest.mark.parametrize("text", ["", "tomorrow", "-1h", "7", "1h1d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a duration"):
        _ = Advance(advance=text).duration_ms


@pytest.mark.parametrize(("method", "document"), [("GET", None), ("POST", {"advance": "7d"})])
def test_a_gateway_with_the_machines_clock_says_where_there_is_one_that_moves(
    method: str, document: dict[str, str] | None
) -> None:
    with gateway_over(Scene()) as scene:
        answer = scene.send(method, "/v1/clock", document)

    assert answer.status == 409
    assert "nobody moves: start `delaytopic local` with --clock manual" in answer.document["message"]
