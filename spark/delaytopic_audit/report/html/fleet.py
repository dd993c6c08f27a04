"""All DelayTopics of a ledger as one self-contained HTML page, by what is left of their error budgets. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from delaytopic_audit.model.report import Verdict
from delaytopic_audit.report.html.page import environment

_ORDER = (Verdict.MISSED, Verdict.CANNOT_JUDGE, Verdict.MET)
_VERDICTS = {Verdict.MET: "met", Verdict.MISSED: "missed", Verdict.CANNOT_JUDGE: "not judged"}


@dataclass(frozen=True)
class Standing:
    """The last verdict on a DelayTopic, and the figures behind it; one that there is nothing to say of is None."""

    delay_topic: str
    """`namespace/name`."""
    verdict: Verdict
    sentence: str
    judged_until_ms: int | None = None
    reasons: Sequence[str] = ()
    """Reasons why there is no verdict."""
    budget_left: float | None = None
    """The share of the error budget; below zero it is overspent."""
    budget_window: str | None = None
    budget_spent: int | None = None
    budget_allowed: float | None = None
    exhausted_ms: int | None = None
    asked: int | None = None
    p99_ms: float | None = None

    @property
    def address(self) -> str:
        """The place of its report among reports."""
        return f"{quote(self.delay_topic)}/report.html"


def fleet_page(standings: Sequence[Standing], reports: str | None, now_ms: int) -> str:
    """Render the whole page. `reports` is the way from it to the folder of reports, for links; None: there is none."""
    counts = Counter(each.verdict for each in standings)
    return (
        environment()
        .get_template("fleet.html.j2")
        .render(
            standings=sorted(standings, key=_worst_first),
            reports=reports,
            verdicts=_VERDICTS,
            counts=[(_VERDICTS[verdict], verdict, counts[verdict]) for verdict in _ORDER if counts[verdict]],
            made_ms=now_ms,
        )
    )


def _worst_first(standing: Standing) -> tuple[bool, float, int, str]:
    """Order by the budget that is left; without any by the verdict."""
    left = standing.budget_left
    return left is None, left or 0.0, _ORDER.index(standing.verdict), standing.delay_topic
