from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from threading import Thread

import pytest

from delaytopic_gateway.errors import ConflictError
from delaytopic_gateway.service.clock import LONGEST_MS
from delaytopic_local.session.clock import LocalClock, Watched
from delaytopic_process.errors import InputError
from delaytopic_process.pages import JSON, Answer, Pages

HOUR_MS = 3_600_000


class Relay:
    """The page of a relay that follows the clock as a test says."""

    def __init__(self) -> None:
        self.page: dict[str, dict[str, object]] = {}
        self.asked = 0
        self._pages = Pages("relay", "127.0.0.1", 0, {"/clock": lambda _: self._answer()})

    def __enter__(self) -> Relay:
        self._pages.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pages.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._pages.port}"

    def _answer(self) -> Answer:
        self.asked += 1
        return Answer(HTTPStatus.OK, JSON, json.dumps(self.page).encode())


@pytest.fixture
def relays() -> Iterator[list[Relay]]:
    with Relay() as one, Relay() as other:
        yield [one, other]


def clock_of(folder: Path, relays: list[Relay]) -> LocalClock:
    clock = LocalClock(folder / "clock")
    clock.watch([Watched("shop/reminders", 2, lambda: [each.url for each in relays])])
    return clock


def test_a_move_returns_when_the_relays_together_have_committed_it_for_all_partitions(
    tmp_path: Path, relays: list[Relay]
) -> None:
    clock = clock_of(tmp_path, relays)
    relays[0].page = {"shownMs": {"0": HOUR_MS, "1": 0}}
    moving = Thread(target=clock.advance, args=(HOUR_MS,))
    moving.start()
    while relays[1].asked < 3:
        moving.join(0.01)
    assert (clock.shift_ms, moving.is_alive()) == (0, True)

    relays[1].page = {"shownMs": {"1": HOUR_MS}}
    moving.join(10)

    assert clock.read().shift_ms == HOUR_MS
    assert (tmp_path / "clock").read_text(encoding="ascii") == str(HOUR_MS)


def test_a_partition_that_cannot_follow_is_named_with_the_reason(tmp_path: Path, relays: list[Relay]) -> None:
    clock = clock_of(tmp_path, relays)
    relays[0].page = {"shownMs": {"0": HOUR_MS, "1": 0}, "waits": {"1": "too many versions wait"}}

    with pytest.raises(ConflictError, match=r"partition 1 of shop/reminders cannot follow .*: too many versions wait"):
        clock.advance(HOUR_MS)


def test_a_move_that_failed_is_made_with_the_next_one(tmp_path: Path, relays: list[Relay]) -> None:
    clock = clock_of(tmp_path, relays)
    relays[0].page = {"shownMs": {"0": HOUR_MS, "1": 0}, "waits": {"1": "too many versions wait"}}
    with pytest.raises(ConflictError):
        clock.advance(HOUR_MS)
    relays[0].page = {"shownMs": {"0": HOUR_MS + 5, "1": HOUR_MS + 5}}

    assert clock.advance(5).shift_ms == HOUR_MS + 5


def test_a_clock_goes_on_where_a_former_run_left_it(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("5000", encoding="ascii")

    assert LocalClock(tmp_path / "clock").shift_ms == 5_000


def test_a_file_that_says_no_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "clock").write_text("soon", encoding="ascii")

    with pytest.raises(InputError, match="must hold the milliseconds"):
        LocalClock(tmp_path / "clock")


def test_a_clock_is_not_moved_by_more_than_a_hundred_years(tmp_path: Path) -> None:
    with pytest.raises(ConflictError, match="a hundred years"):
        LocalClock(tmp_path / "clock").advance(LONGEST_MS + 1)
