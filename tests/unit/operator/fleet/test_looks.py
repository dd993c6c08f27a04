"""Tests of which reconciliations are a look at the numbers alone, and when a whole one follows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.support.operator.scenes import CONFIG, KEY
from tests.unit.operator.fleet.test_steady import LATER_MS, SEEN, again, with_page

from delaytopic_operator.decide.plan import ForgetRecord, Plan
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.execute.executor import Outcome
from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
from delaytopic_operator.fleet.looks import EARLY, SHOWN_PER_SECOND, WHOLE_MS, FleetLooks
from delaytopic_operator.model.reconciliation import Key, Result
from delaytopic_operator.observe.observation import Observation

INTERVAL_MS = CONFIG.status_interval.ms
NEXT_LOOK = Result(LATER_MS + CONFIG.poll.ms, "kafka:9092", early_ms=CONFIG.poll.ms // EARLY)


@dataclass
class Edges:
    """Numbers that a look sees, and those that it tells the page of metrics."""

    seen: Observation | None = field(default_factory=again)
    told: list[int] = field(default_factory=list)
    shown: list[Observation] = field(default_factory=list)
    gauged: list[Observation] = field(default_factory=list)
    in_full: list[bool] = field(default_factory=list)
    declared: str = "as declared"

    def judged_by(self, _: Key) -> str:
        """Return what it is judged by."""
        return self.declared

    def look_again(self, _: Observation, *, in_full: bool) -> Observation | None:
        """Return what is seen."""
        self.in_full.append(in_full)
        return self.seen

    def report(self, seen: Observation, decided: Plan, outcome: Outcome, *, dry_run: bool) -> None:
        """Keep what the status shows the numbers of."""
        assert (decided.actions, outcome, dry_run) == ((), Outcome(), False)
        self.shown.append(seen)

    def update(self, seen: Observation, decided: Plan, outcome: Outcome) -> None:
        """Keep what the page of metrics shows the numbers of."""
        assert (decided.actions, outcome) == ((), Outcome())
        self.gauged.append(seen)

    def update_scaling(self, _: Observation, decision: Any) -> None:
        """Keep the number of relays."""
        self.told.append(decision.wanted)


@pytest.fixture
def edges() -> Edges:
    return Edges()


@pytest.fixture
def looks(edges: Edges) -> FleetLooks:
    """The looks after a reconciliation that found nothing to do."""
    of_edges: Any = edges
    turns = RolloutLimiter(CONFIG.rollouts)
    made = FleetLooks(of_edges, ScalingLedger(), turns, of_edges, of_edges, CONFIG, lambda: 0.0)
    made.note(SEEN, plan(SEEN), Outcome(), "as declared")
    return made


def look(looks: FleetLooks, judged_by: str = "as declared", now_ms: int = LATER_MS) -> Result | None:
    return looks.look(KEY, judged_by, now_ms, now_ms)


def test_numbers_are_looked_at_again_and_again_and_shown(looks: FleetLooks, edges: Edges) -> None:
    assert [look(looks), look(looks), edges.told] == [NEXT_LOOK, NEXT_LOOK, [1, 1]]


def test_a_change_of_an_object_brings_a_reconciliation_and_no_look_before_it(looks: FleetLooks) -> None:
    assert [look(looks, "edited"), look(looks)] == [None, None]


def test_a_namespace_or_a_secret_that_changed_brings_a_reconciliation(looks: FleetLooks, edges: Edges) -> None:
    edges.seen = None

    assert [look(looks), look(looks)] == [None, None]


def test_a_status_shows_numbers_once_an_interval_by_a_look_in_full(looks: FleetLooks, edges: Edges) -> None:
    first_ms = SEEN.now_ms + INTERVAL_MS

    looked = [look(looks, now_ms=first_ms + after_ms) for after_ms in (-1, 0, INTERVAL_MS - 1, INTERVAL_MS)]

    assert looked == [NEXT_LOOK] * 4
    assert edges.in_full == [False, True, False, True]
    assert edges.shown == edges.gauged == [edges.seen] * 2


def test_with_thousands_numbers_of_five_statuses_a_second_are_shown(looks: FleetLooks, edges: Edges) -> None:
    decided = plan(SEEN)
    for number in range(3_999):
        looks.note(replace(SEEN, key=Key("shop", f"route-{number}")), decided, Outcome(), "as declared")
    # The first one was alone; the next time it has its turn among 4,000.
    first_ms, later_ms = SEEN.now_ms + INTERVAL_MS, 3_999 * 1_000 // SHOWN_PER_SECOND

    for after_ms in (0, later_ms - 1, later_ms):
        look(looks, now_ms=first_ms + after_ms)

    assert edges.in_full == [True, False, True]


def test_a_delaytopic_that_is_edited_while_it_is_looked_at_is_reconciled_and_shown_by_that(
    looks: FleetLooks, edges: Edges
) -> None:
    edges.declared = "edited"

    assert (look(looks, now_ms=SEEN.now_ms + INTERVAL_MS), edges.shown, edges.gauged) == (None, [], [])


def test_a_look_that_ends_in_a_whole_reconciliation_shows_nothing(looks: FleetLooks, edges: Edges) -> None:
    edges.seen = with_page(again(), state="Failed")

    assert (look(looks, now_ms=SEEN.now_ms + INTERVAL_MS), edges.shown) == (None, [])


def test_a_whole_reconciliation_follows_after_an_hour_though_nothing_has_changed(looks: FleetLooks) -> None:
    last_ms = SEEN.now_ms + WHOLE_MS

    assert [look(looks, now_ms=last_ms - 1), look(looks, now_ms=last_ms)] == [NEXT_LOOK, None]


def test_a_reconciliation_that_failed_or_did_something_is_followed_by_another(looks: FleetLooks) -> None:
    decided = plan(SEEN)
    looks.look(KEY, "edited", LATER_MS, LATER_MS)

    looks.note(SEEN, decided, Outcome(failure=KafkaUnavailable("no answer")), "edited")
    after_failure = look(looks, "edited")
    busy = type(decided)(actions=[ForgetRecord("x")], conditions=decided.conditions, topics=decided.topics)
    looks.note(SEEN, busy, Outcome(), "edited")

    assert [after_failure, look(looks, "edited")] == [None, None]
