"""The operator's rule without one of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from delaytopic_operator.scaling import assessment, decision, rules, state
from delaytopic_operator.scaling.capacity import ASSUMED_PER_SECOND, START_MS, Capacity, LeadTime
from delaytopic_operator.scaling.rules import Context, Reason, Recommendation

Change = tuple[object, str, Any]


def short(context: Context) -> Recommendation:
    """Scale by the same needs in some lines: up to what is at hand, down to the most of five minutes."""
    if not context.assessment.known:
        return context.hold(Reason.SIGNAL_STALE, "no relay tells what is due")
    window_ms = context.policy.autoscaling.scale_down_stabilization.ms
    past = context.memory.recommendations.most(context.now_ms, window_ms)
    wanted = max(context.assessment.wanted, past.relays if past is not None else 0)
    if wanted < context.current and not context.complete:
        return context.hold(Reason.SIGNAL_STALE, "something is missing")
    return Recommendation(wanted, Reason.DUE, "")


VARIANTS: Final[Mapping[str, tuple[Change, ...]]] = {
    "all rules": (),
    "lead time taken to be 45 s": ((LeadTime, "p95_ms", lambda _: START_MS),),
    "lead time taken to be 0 s": ((LeadTime, "p95_ms", lambda _: 0),),
    "rate taken to be 5,000": ((Capacity, "per_second", property(lambda _: ASSUMED_PER_SECOND)),),
    "intake not looked at": ((assessment, "_ingest", lambda *_: None),),
    "no peaks of the last day": ((state.Peaks, "p95", lambda _: None),),
    "down without a tenth to spare": ((assessment, "MARGIN", 1.0),),
    "down although more is needed soon": ((assessment.Assessment, "enough_ahead", assessment.Assessment.enough),),
    "down at once": ((state.Recommendations, "most", lambda *_: None),),
    "down on missing pages": ((rules.Context, "complete", property(lambda self: self.assessment.known)),),
    "steps at any time": ((rules, "STEP_MS", 0), (rules, "STEP_DOWN_MS", 0)),
    "short": ((decision, "recommend", short),),
}


@contextmanager
def variant(name: str) -> Iterator[None]:
    """Have the operator decide so."""
    with ExitStack() as stack:
        for place, attribute, value in VARIANTS[name]:
            stack.enter_context(patch.object(place, attribute, value))
        yield
