"""The plan of a reconciliation: actions, findings, and when to look again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delaytopic_operator.decide.actions import Action, Apply
from delaytopic_operator.model.conditions import Finding, Progress
from delaytopic_operator.model.transitions import Event
from delaytopic_operator.scaling.decision import Decision

NOTHING_CHANGES = Progress()


@dataclass(frozen=True)
class Plan:
    """The outcome of one look at one DelayTopic."""

    actions: Sequence[Action] = ()
    """In this order."""
    findings: Sequence[Finding] = ()
    """The conditions, without Ready, Reconciling and Stalled, which follow from them."""
    progress: Progress = NOTHING_CHANGES
    suspended: str | None = None
    """The parts that `spec.suspend` pauses, in words."""
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the status, as documents have them."""
    events: Sequence[Event] = ()
    """Beside those that follow from conditions and actions."""
    next_at_ms: int | None = None
    """Look again then, at the latest."""
    scaling: Decision | None = None
    """The number of relays as decided; `step` is what the actions execute of it."""

    @property
    def step(self) -> Decision | None:
        """The scaling step among the actions; None where there is none, or the Deployment is withheld."""
        return step_in(self.actions)


def step_in(actions: Sequence[Action]) -> Decision | None:
    """Return the scaling step that these actions take."""
    return next((action.step for action in actions if isinstance(action, Apply) and action.step is not None), None)
