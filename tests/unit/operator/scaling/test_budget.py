from __future__ import annotations

from tests.unit.operator.scaling.scenes import NOW_MS, burst, decided, signals

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.scaling.decision import MINUTE_MS, WAITING_LASTS_MS, Budget
from delaytopic_operator.scaling.rules import Reason

URGENT, OTHER, IDLE = (Key("shop", name) for name in ("urgent", "other", "idle"))


def spent(steps: int = 2) -> Budget:
    """All steps of a minute taken, just now."""
    budget = Budget(steps_a_minute=steps)
    for number in range(steps):
        budget = budget.ask(Key("shop", f"topic-{number}"), 0, NOW_MS).budget
    return budget


def test_so_many_steps_may_be_taken_in_a_minute() -> None:
    answer = spent().ask(OTHER, 5_000, NOW_MS)

    assert answer.ask_again_ms == NOW_MS + 15_000


def test_after_a_minute_there_is_room_again() -> None:
    assert spent().ask(OTHER, 0, NOW_MS + MINUTE_MS).ask_again_ms is None


def test_a_step_that_prevents_more_lateness_goes_first() -> None:
    waiting = spent(1).ask(URGENT, 60_000, NOW_MS).budget
    next_minute_ms = NOW_MS + 30_000
    room = Budget(1, (), waiting.waiting)

    refused = room.ask(OTHER, 5_000, next_minute_ms)
    granted = refused.budget.ask(URGENT, 60_000, next_minute_ms)

    assert (refused.ask_again_ms, granted.ask_again_ms) == (next_minute_ms + 15_000, None)
    assert list(granted.budget.waiting) == [OTHER]


def test_a_waiting_step_that_is_not_asked_for_again_blocks_nobody() -> None:
    waiting = spent(1).ask(URGENT, 60_000, NOW_MS).budget

    assert waiting.ask(OTHER, 0, NOW_MS + max(MINUTE_MS, WAITING_LASTS_MS + 1)).ask_again_ms is None


def test_a_step_that_waits_leaves_the_fleet_and_its_memory_as_they_were() -> None:
    decision = decided(1, signals(burst(60, 300_000)))

    waits = decision.deferred(NOW_MS + 5_000)

    assert decision.prevents_ms == 110_000
    assert (waits.replicas, waits.changed, waits.reason) == (1, False, Reason.OPERATOR_BUDGET)
    assert (waits.memory.step, waits.memory.replicas, waits.next_look_ms) == (None, 1, NOW_MS + 5_000)
    assert waits.sentence.startswith("From 1 to 12 relays: ")


def test_taking_relays_away_prevents_nothing() -> None:
    assert decided(12, signals()).prevents_ms == 0
