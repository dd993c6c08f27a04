"""Shares of what is scarce: nobody has more than a part of it, and all together not more than there is."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Condition
from typing import Final

from delaytopic_gateway.errors import BusyError

PATIENCE_S: Final = 10.0
"""The longest time that a request waits for its turn."""
SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def team_of(name: str) -> str:
    """Return who shares with a user of this name: the ServiceAccounts of a namespace are one team. Pure."""
    return name.rpartition(":")[0] if name.startswith(SERVICE_ACCOUNT) else name


class Shares:
    """Counts what each owner has. Pure; for one thread."""

    def __init__(self, total: int, each: int) -> None:
        """`each` owner has at most so much of `total`."""
        self._total = total
        self._each = each
        self._taken: Counter[str] = Counter()

    def take(self, owner: str, amount: int = 1) -> bool:
        """Give an owner so much more, if it is there; tell whether it was."""
        if self._taken[owner] + amount > self._each or self._taken.total() + amount > self._total:
            # A Counter keeps no entry for what was only looked at.
            return False
        self._taken[owner] += amount
        return True

    def give(self, owner: str, amount: int = 1) -> None:
        """Take back what an owner had."""
        self._taken[owner] -= amount
        if not self._taken[owner]:
            del self._taken[owner]


class Turns:
    """Lets only so many in at once, and of each owner only a few; others wait. For one event loop."""

    def __init__(self, total: int, each: int, waiting: int, patience_s: float = PATIENCE_S) -> None:
        """`waiting` is the most that wait of one owner."""
        self._shares = Shares(total, each)
        self._most_waiting = waiting
        self._patience_s = patience_s
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the body runs. Raises `BusyError`."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: str) -> None:
        before = sum(owner == each for each, _ in self._waiting)
        if not before and self._shares.take(owner):
            return
        if before >= self._most_waiting:
            raise BusyError(f"{before} requests of this caller wait already; ask again in a moment")
        place = owner, asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout(self._patience_s):
                await place[1]
        except BaseException as error:
            if place in self._waiting:
                self._waiting.remove(place)
            else:
                # Its turn came at the same moment.
                self._leave(owner)
            if isinstance(error, TimeoutError):
                raise BusyError("other requests are under way; ask again in a moment") from None
            raise

    def _leave(self, owner: str) -> None:
        self._shares.give(owner)
        for place in [*self._waiting]:
            next_owner, future = place
            if self._shares.take(next_owner):
                self._waiting.remove(place)
                future.set_result(None)


class ThreadTurns:
    """Lets only so many threads in at once, and of each owner only one; others wait."""

    def __init__(self, total: int, what: str, patience_s: float = PATIENCE_S) -> None:
        """`what` names the things that are read meanwhile, for whoever has waited in vain."""
        self._shares = Shares(total, 1)
        self._what = what
        self._patience_s = patience_s
        self._changed = Condition()

    @contextmanager
    def turn(self, owner: str) -> Iterator[None]:
        """Wait for a turn, and have it while the body runs. Raises `BusyError`."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._shares.take(owner), self._patience_s):
                raise BusyError(f"many {self._what} are being read just now; ask again in a moment")
        try:
            yield
        finally:
            with self._changed:
                self._shares.give(owner)
                self._changed.notify_all()
