"""Steps of the whole operator: at most so many a minute, the one that prevents most lateness first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from delaytopic_operator.model.keys import Key
from delaytopic_operator.scaling.memory import ScalingMemory
from delaytopic_operator.scaling.outcome import Decision, Reason

MINUTE_MS = 60_000
STEPS_A_MINUTE = 20
WISH_LASTS_MS = 45_000
"""A wish that is not repeated for so long is none any more."""


class StepWish(NamedTuple):
    """A step that waits, and the lateness that it would prevent."""

    at_ms: int
    prevents_ms: int


class Answer(NamedTuple):
    """Whether the step may be taken, the budget afterwards, and otherwise when to ask again."""

    granted: bool
    budget: Budget
    ask_again_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """Steps of the last minute, and the steps that wait, by DelayTopic: ask under a lock, keep the answer's budget."""

    steps_a_minute: int = STEPS_A_MINUTE
    taken_ms: tuple[int, ...] = ()
    waiting: Mapping[Key, StepWish] = field(default_factory=dict)

    def ask(self, key: Key, prevents_ms: int, now_ms: int) -> Answer:
        """May this DelayTopic take a step? Places are kept for steps that wait and would prevent more lateness."""
        taken_ms = tuple(at_ms for at_ms in self.taken_ms if now_ms - at_ms < MINUTE_MS)
        others = {
            each: wish for each, wish in self.waiting.items() if each != key and now_ms - wish.at_ms <= WISH_LASTS_MS
        }
        ahead = sum(wish.prevents_ms > prevents_ms for wish in others.values())
        if len(taken_ms) + ahead < self.steps_a_minute:
            return Answer(True, replace(self, taken_ms=(*taken_ms, now_ms), waiting=others))
        waiting = {**others, key: StepWish(now_ms, prevents_ms)}
        ask_again_ms = taken_ms[0] + MINUTE_MS if taken_ms else now_ms + WISH_LASTS_MS // 3
        return Answer(
            False, replace(self, taken_ms=taken_ms, waiting=waiting), min(ask_again_ms, now_ms + WISH_LASTS_MS // 3)
        )


def prevented_ms(decision: Decision) -> int:
    """How much lateness a step prevents; nothing, if it takes relays away."""
    forecast = decision.forecast
    return max(0, forecast.held_ms - forecast.decided_ms) if forecast is not None else 0


def deferred(decision: Decision, before: ScalingMemory, ask_again_ms: int) -> Decision:
    """The decision without its step, which waits for the budget; `before` is the memory that it was made from."""
    sentence = f"{decision.sentence[:-1]}; waits, as the operator has taken all the steps that it may in a minute."
    memory = replace(decision.memory, replicas=decision.current, step=before.step)
    return replace(
        decision,
        replicas=decision.current,
        reason=Reason.OPERATOR_BUDGET,
        sentence=sentence,
        memory=memory,
        next_look_ms=min(ask_again_ms, decision.next_look_ms),
    )
