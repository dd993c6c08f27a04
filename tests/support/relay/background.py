"""An executor without threads: work is done when it was asked about so many times."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from delaytopic_relay.errors import RelayError

T = TypeVar("T")


class Begun(Future[T]):
    """Work that is done when it was asked about so many times, and at the latest when its result is needed."""

    def __init__(self, work: Callable[[], T], asks: int) -> None:
        super().__init__()
        self._work = work
        self._asks = asks

    def done(self) -> bool:
        self._asks -= 1
        if self._asks <= 0:
            self.do()
        return super().done()

    def result(self, timeout: float | None = None) -> T:
        self.do()
        return super().result(timeout)

    def do(self) -> None:
        """Do it, unless it was done; what is no error of the relay's goes up, as the end of a process does."""
        if super().done():
            return
        try:
            answer = self._work()
        except RelayError as error:
            self.set_exception(error)
        else:
            self.set_result(answer)


class Background(Executor):
    """Does work at once where `asks` is 0, and else when it was asked about so many times."""

    def __init__(self, asks: int) -> None:
        self._asks = asks

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        begun = Begun(lambda: work(*arguments, **keywords), self._asks)
        if self._asks == 0:
            begun.do()
        return begun
