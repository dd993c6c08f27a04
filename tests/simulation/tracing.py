"""The story of a history, line by line, for people."""

from __future__ import annotations

from tests.simulation.faults import HAPPENING, What
from tests.simulation.plans.plan import Action, Arm, Pass, Plan, Produce, Recipe

LASTING = (What.FREEZE, What.RESTART)


def told(plan: Plan) -> list[str]:
    """The setup and the actions of a plan."""
    differing = [f"{name}={value!r}" for name, value in plan.setup._asdict().items() if _unusual(plan, name)]
    return [f"setup: {', '.join(differing) or 'the usual'}", *map(_told, plan.actions)]


def _unusual(plan: Plan, name: str) -> bool:
    return bool(getattr(plan.setup, name) != plan.setup._field_defaults[name])


def _told(action: Action) -> str:
    if isinstance(action, Pass):
        return f"{action.duration_ms} ms pass, and every relay takes a turn"
    if isinstance(action, Produce):
        records = ", ".join(map(_record, action.recipes))
        if action.commits is None:
            return f"produce {records}"
        outcome = "committed" if action.commits else "aborted"
        return f"produce {records}, in a transaction that is {outcome} after {action.open_ms} ms"
    if isinstance(action, Arm):
        fault = action.fault
        place = f"number {fault.nth} of relay {-1 - action.relay}"
        length = f" ({fault.length_ms} ms)" if fault.what not in HAPPENING or fault.what in LASTING else ""
        return f"await: {fault.name}{length}, {place}"
    return str(action)


def _record(recipe: Recipe) -> str:
    if recipe.cancel:
        what = "a cancel"
    elif recipe.keeps:
        what = f"a KEEPALIVE of {recipe.due_ms} ms"
    elif recipe.at_ms is not None:
        what = f"a record due at {recipe.at_ms}"
    elif recipe.due_ms is not None:
        what = f"a record due in {recipe.due_ms} ms"
    else:
        what = "a record without a time"
    if recipe.rule:
        what = f"a record with the rule {recipe.rule}"
    name = f" of {recipe.name.decode()}" if recipe.name is not None else ""
    others = f" with {recipe.others}" if recipe.others else ""
    value = f" and the value {recipe.value!r}" if recipe.value != b"v" and not recipe.cancel else ""
    return f"{what}{name}{others}{value} to {recipe.partition}"
