"""The rules that delivery is held to, as plain numbers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from delaytopic_api.documents import Model
from delaytopic_api.values import Calendar, Guarantee, Percent, TimeZone

DEFAULT_SETTLING_MS = 60_000
Milliseconds = Annotated[int, Field(ge=0)]


class Exclusion(Model):
    """A time in whole minutes in which lateness is excused."""

    from_ms: Milliseconds
    until_ms: Milliseconds
    reason: str


class Threshold(Model):
    """A further threshold of lateness, with an objective of its own."""

    name: str
    """The name of its objective."""
    lateness_ms: Milliseconds
    """A record that arrived later than this after its deadline is late for it."""
    objective: Percent
    """The share of records that must not be."""


class Rules(Model):
    """The rules of one run; they are kept with its plan, so that a repeated run has the same ones."""

    lateness_ms: Milliseconds
    """A record that arrived later than this after its deadline is late."""
    grace_ms: Milliseconds
    """A minute is graded this long after its end. A cancel or replacement sent within this time of its schedule's
    deadline races with the delivery, and both outcomes are right."""
    objective: Percent
    """The share of records that must not be late."""
    window_ms: Milliseconds
    """Over which the budget is counted, without a calendar."""
    calendar: Calendar | None = None
    """The periods by which it is counted, in place of that."""
    time_zone: TimeZone | None = None
    """The zone in which these periods begin at midnight; None for UTC."""
    guarantee: Guarantee
    """AtLeastOnce does not promise uniqueness: duplicates are counted, and no objective."""
    tells: bool = False
    """True: the DelayTopic has a topic of outcomes, which has to say of each end once what is so."""
    loss_horizon_ms: Milliseconds = 24 * 3_600_000
    """A loss is provisional for so long, and final from then on."""
    clock_tolerance_ms: Milliseconds = 5
    """Clocks may differ by so much before a record counts as early."""
    max_skew_ms: Milliseconds = 250
    """A difference of clocks that receipts prove excuses a record from being early, up to this much."""
    retention_ms: Milliseconds
    """The time for which the ledger remembers graded minutes."""
    exclusions: list[Exclusion] = Field(default_factory=list)
    """Records due within one count for no objective of lateness. Minutes are graded without them: they are applied
    when a report is made, so that one that is added later holds for what was graded before."""
    thresholds: list[Threshold] = Field(default_factory=list)
    """Minutes are graded by each of them, beside `lateness_ms`."""

    def by(self, threshold: Threshold) -> Rules:
        """Return the rules with this threshold and its objective in place of the usual ones."""
        return self.model_copy(update={"lateness_ms": threshold.lateness_ms, "objective": threshold.objective})


def default_grace_ms(lateness_ms: int) -> int:
    """Return a minute more than the lateness that is allowed: late is not lost."""
    return lateness_ms + DEFAULT_SETTLING_MS
