"""Turns: so many at once, of each owner a part, and the others when one leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from delaytopic_gateway.access.bounds.shares import Shares, Turns, team_of
from delaytopic_gateway.errors import BusyError


def test_an_owner_has_a_part_and_leaves_the_rest_to_others() -> None:
    shares = Shares(5, 3)

    assert [shares.take(owner, amount) for owner, amount in [("a", 3), ("a", 1), ("b", 3), ("b", 2)]] == [
        True,
        False,
        False,
        True,
    ]
    shares.give("a", 1)
    assert (shares.take("b", 2), shares.take("b", 1)) == (False, True)


@pytest.mark.parametrize(
    ("name", "team"),
    [
        ("system:serviceaccount:shop:reader", "system:serviceaccount:shop"),
        ("system:serviceaccount:shop:writer", "system:serviceaccount:shop"),
        ("jane@example.com", "jane@example.com"),
        ("", ""),
    ],
)
def test_the_accounts_of_a_namespace_are_one_team(name: str, team: str) -> None:
    assert team_of(name) == team


class Visits:
    """Requests that stay until they are let go."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.inside: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.leave: dict[str, asyncio.Event] = {}

    async def begin(self, name: str) -> None:
        self.leave[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._visit(name))
        await settled()

    async def _visit(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.inside.append(name)
            await self.leave[name].wait()

    async def end(self, name: str) -> None:
        self.leave[name].set()
        await self.tasks.pop(name)
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(story: Callable[[Visits], Awaitable[None]], turns: Turns) -> list[str]:
    async def told() -> list[str]:
        visits = Visits(turns)
        await story(visits)
        for task in visits.tasks.values():
            task.cancel()
        return visits.inside

    return asyncio.run(told())


def test_others_come_in_before_an_owner_who_has_its_part() -> None:
    async def story(visits: Visits) -> None:
        for name in ("a1", "a2", "a3", "b1", "b2"):
            await visits.begin(name)
        await visits.end("a1")

    assert run(story, Turns(3, 2, 10)) == ["a1", "a2", "b1", "a3"]


def test_a_turn_goes_to_whoever_has_waited_longest_and_may() -> None:
    async def story(visits: Visits) -> None:
        for name in ("a1", "b1", "a2", "b2", "c1"):
            await visits.begin(name)
        await visits.end("b1")

    assert run(story, Turns(2, 1, 10)) == ["a1", "b1", "b2"]


def test_one_who_gave_up_has_no_turn() -> None:
    async def story(visits: Visits) -> None:
        for name in ("a1", "b1", "c1"):
            await visits.begin(name)
        visits.tasks.pop("b1").cancel()
        await visits.end("a1")
        await visits.end("c1")
        await visits.begin("d1")

    assert run(story, Turns(1, 1, 10)) == ["a1", "c1", "d1"]


def test_only_so_many_of_an_owner_wait() -> None:
    async def story(visits: Visits) -> None:
        for name in ("a1", "a2", "a3"):
            await visits.begin(name)
        with pytest.raises(BusyError, match="1 requests of this caller wait already"):
            await visits.tasks.pop("a3")

    assert run(story, Turns(1, 1, 1)) == ["a1"]


def test_nobody_waits_for_ever() -> None:
    async def story(visits: Visits) -> None:
        await visits.begin("a1")
        await visits.begin("b1")
        with pytest.raises(BusyError, match="other requests are under way"):
            await visits.tasks.pop("b1")

    assert run(story, Turns(1, 1, 1, patience_s=0.0)) == ["a1"]
