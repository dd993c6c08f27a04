"""The shortest plan that still fails: takes actions away, then records, then makes the rest simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.simulation.plans.plan import Action, Arm, Pass, Plan, Produce, Setup

MOST_RUNS = 3_000

Fails = Callable[[Plan], bool]


class Shrinker:
    """Tries smaller plans as long as they fail, within a number of runs."""

    def __init__(self, plan: Plan, fails: Fails, most_runs: int = MOST_RUNS) -> None:
        """`fails` runs a plan; the given one is known to."""
        self.plan = plan
        self._fails = fails
        self._runs_left = most_runs

    def shrink(self) -> Plan:
        """Shrink it as far as possible."""
        before: Plan | None = None
        while before != self.plan and self._runs_left > 0:
            before = self.plan
            self._without_actions()
            self._try_all(_simpler_actions)
            self._try_all(_simpler_setups)
        return self.plan

    def _try(self, plan: Plan) -> bool:
        if self._runs_left <= 0 or plan == self.plan:
            return False
        self._runs_left -= 1
        if not self._fails(plan):
            return False
        self.plan = plan
        return True

    def _without_actions(self) -> None:
        size = max(1, len(self.plan.actions) // 2)
        while size:
            first = 0
            while first < len(self.plan.actions):
                actions = self.plan.actions
                fewer = self.plan._replace(actions=actions[:first] + actions[first + size :])
                if not self._try(fewer):
                    first += size
            size //= 2

    def _try_all(self, candidates: Callable[[Plan], Iterator[Plan]]) -> None:
        while any(self._try(candidate) for candidate in candidates(self.plan)):
            pass


def _simpler_actions(plan: Plan) -> Iterator[Plan]:
    for place, action in enumerate(plan.actions):
        for simpler in _simpler(action):
            yield plan._replace(actions=(*plan.actions[:place], simpler, *plan.actions[place + 1 :]))


def _simpler(action: Action) -> Iterator[Action]:
    if isinstance(action, Produce):
        yield from _simpler_records(action)
    elif isinstance(action, Arm) and action.fault.nth > 1:
        yield action._replace(fault=action.fault._replace(nth=action.fault.nth - 1))
    elif isinstance(action, Pass):
        for duration_ms in (0, 100, 1_000):
            if duration_ms < action.duration_ms:
                yield Pass(duration_ms)


def _simpler_records(action: Produce) -> Iterator[Produce]:
    if action.commits is not None:
        yield action._replace(commits=None)
    if len(action.recipes) > 1:
        for place in range(len(action.recipes)):
            yield action._replace(recipes=action.recipes[:place] + action.recipes[place + 1 :])
    for place, recipe in enumerate(action.recipes):
        for plain in (recipe._replace(others=()), recipe._replace(value=b"v"), recipe._replace(name=None)):
            if plain != recipe and not recipe.cancel:
                yield action._replace(recipes=(*action.recipes[:place], plain, *action.recipes[place + 1 :]))


def _simpler_setups(plan: Plan) -> Iterator[Plan]:
    setup = plan.setup
    usual = Setup(transactional=setup.transactional, delay_ms=setup.delay_ms, recurs=setup.recurs)
    for field, value in usual._asdict().items():
        yield plan._replace(setup=plan.setup._replace(**{field: value}))
