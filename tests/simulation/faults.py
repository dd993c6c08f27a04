"""Faults at the effects of a relay, and the gate through which every effect goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Crash(BaseException):
    """The process died here; no `except` of the relay may see it. It starts again in place after `restarts_ms`."""

    def __init__(self, where: str, restarts_ms: int | None = None) -> None:
        super().__init__(where)
        self.restarts_ms = restarts_ms


class What(StrEnum):
    """A kind of fault: the first ones happen to the process or to its member, the others are answers that it gets."""

    CRASH = "crash"
    FREEZE = "freeze"
    EVICTION = "eviction"
    REBALANCE = "rebalance"
    RESTART = "restart"  # it crashes, and starts again in place, with its name in the group
    REMOVAL = "removal"  # somebody takes its member out of the group, although it lives
    FENCING = "fencing"  # the same, and it hears in between that its name is another's
    LOST = "lost"  # the request never arrives, and nobody answers
    UNANSWERED = "unanswered"  # it is carried out, and the answer is lost
    LATE = "late"  # nobody answers, and it is carried out after the client has given up
    DECIDED = "decided"  # a commit that is decided and answered, but visible only later
    RETRIABLE = "retriable"
    ABORTABLE = "abortable"
    FATAL = "fatal"


PROCESS = (What.CRASH, What.FREEZE, What.EVICTION, What.REBALANCE)
OF_MEMBERS = (What.RESTART, What.REMOVAL, What.FENCING)
"""Further faults of relays that have names in their group."""
HAPPENING = (*PROCESS, *OF_MEMBERS)
SILENCE = (What.LOST, What.UNANSWERED, What.LATE)
ANSWERS: dict[str, tuple[What, ...]] = {
    "poll": (What.RETRIABLE, What.FATAL),
    "last committed": (What.RETRIABLE,),
    "committed": (What.RETRIABLE,),
    "bounds": (What.RETRIABLE,),
    "read from": (What.RETRIABLE,),
    "source commit": (*SILENCE, What.ABORTABLE),
    "begin": (What.RETRIABLE, What.ABORTABLE, What.FATAL),
    "produce": (What.RETRIABLE, What.ABORTABLE, What.FATAL),
    "flush": (What.RETRIABLE, What.ABORTABLE, What.FATAL),
    "offsets": (*SILENCE, What.RETRIABLE, What.ABORTABLE, What.FATAL),
    "commit": (*SILENCE, What.DECIDED, What.RETRIABLE, What.ABORTABLE, What.FATAL),
    "abort": SILENCE,
    "fence": SILENCE,
    "replace": SILENCE,
    "position": (What.LOST,),
    "put": SILENCE,
    "slices": (What.LOST,),
    "load": (What.LOST,),
    "ids": (What.LOST,),
    "check": (What.LOST,),
    "drop": SILENCE,
}
"""Every effect, with the answers that it distinguishes. `check` is the second half of a read from Redis."""

WEIGHTS = {
    "produce": 2,
    "flush": 2,
    "offsets": 2,
    "commit": 8,
    "put": 5,
    "drop": 2,
    "load": 2,
    "poll": 2,
    "source commit": 8,
    "abort": 3,
    "fence": 3,
    "replace": 3,
}
"""The weight of an effect among planned faults; 1 where nothing is said."""


class Fault(NamedTuple):
    """The `nth` time that the relay comes to an effect, this happens there."""

    effect: str
    nth: int
    what: What
    before: bool = True
    """True if it happens to the process before the effect or after it; an answer takes the effect's place."""
    length_ms: int = 0
    """The delay of a late request or of a start in place, or the length of a freeze; one of 0 lasts until a successor
    has committed.
    """

    @property
    def name(self) -> str:
        """Return the name by which it is counted."""
        if self.what in HAPPENING:
            return f"{self.what} {'before' if self.before else 'after'} {self.effect}"
        return f"{self.effect} {self.what}"


def all_names() -> list[str]:
    """Every fault there is for relays without names, as counted."""
    return _names_of(PROCESS) + [Fault(effect, 1, what).name for effect, answers in ANSWERS.items() for what in answers]


def names_of_members() -> list[str]:
    """Every further fault for relays with names."""
    return _names_of(OF_MEMBERS)


def _names_of(happening: Iterable[What]) -> list[str]:
    return [Fault(effect, 1, what, before).name for effect in ANSWERS for what in happening for before in (True, False)]


class Gate:
    """Stands before the effects of one relay, and lets happen what is planned for them."""

    def __init__(self, counts: Counter[str], happen: Callable[[Fault], None]) -> None:
        """`happen` carries out what happens to the process; it raises `Crash`, or returns when it is over."""
        self._counts = counts
        self._happen = happen
        self._armed: list[Fault] = []

    def arm(self, fault: Fault) -> None:
        """Let this happen once."""
        self._armed.append(fault)

    def disarm(self) -> None:
        """Let nothing happen any more."""
        self._armed.clear()

    @property
    def may_freeze(self) -> bool:
        """Return whether the next step may be suspended."""
        return any(fault.what is What.FREEZE for fault in self._armed)

    def call(self, effect: str, act: Callable[[], T], answer: Callable[[Fault], T]) -> T:
        """Carry out an effect; `answer` gives what its client makes of another answer, mostly by raising it."""
        fault = self._due(effect) if self._armed else None
        if fault is None:
            return act()
        self._counts[fault.name] += 1
        if fault.what not in HAPPENING:
            return answer(fault)
        if fault.before:
            self._happen(fault)
            return act()
        done = act()
        self._happen(fault)
        return done

    def _due(self, effect: str) -> Fault | None:
        due: Fault | None = None
        left: list[Fault] = []
        for fault in self._armed:
            if fault.effect != effect:
                left.append(fault)
            elif fault.nth > 1 or due is not None:
                left.append(fault._replace(nth=max(1, fault.nth - 1)))
            else:
                due = fault
        self._armed = left
        return due
