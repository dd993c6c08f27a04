"""Changes of the number of relays by somebody who does not decide it: noticed once, and told. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple

from delaytopic_api.values import AutoscalingMode

TOLD_MS: Final = 3_600_000
"""The time for which a change by hand is told in the condition, unless a step of the operator comes first."""
SETTLES_MS: Final = 1_000
"""Kubernetes knows to the second when a Deployment was made."""


class HandChange(NamedTuple):
    """A number that somebody changed."""

    at_ms: int
    before: int
    after: int
    of_deployment: bool
    """False: it is `spec.relay.replicas`."""


def change_by_hand(
    mode: AutoscalingMode, left: int | None, current: int, asked_before: int | None, asked: int, now_ms: int
) -> HandChange | None:
    """Find a change that counts for nothing.

    `left` is what the last reconciliation left the Deployment with, `asked` what `spec.relay.replicas` says.
    """
    if left is not None and left != current:
        return HandChange(now_ms, left, current, of_deployment=True)
    if mode is AutoscalingMode.OPERATOR and asked_before is not None and asked_before != asked:
        return HandChange(now_ms, asked_before, asked, of_deployment=False)
    return None


def explain_change(change: HandChange, mode: AutoscalingMode) -> str:
    """Say who decides, and how to take over."""
    subject = "the relays' Deployment" if change.of_deployment else "relay.replicas"
    return f"Somebody changed {subject} from {change.before} to {change.after}: {_who_decides(mode)}."


def _who_decides(mode: AutoscalingMode) -> str:
    match mode:
        case AutoscalingMode.OPERATOR:
            return (
                "the operator decides, as autoscaling.mode is Operator; to take over, set it to External and scale "
                "the DelayTopic, or to Fixed and set relay.replicas"
            )
        case AutoscalingMode.EXTERNAL:
            return "it is set back, as autoscaling.mode is External; scale the DelayTopic instead"
        case AutoscalingMode.FIXED:
            return "it is set back, as autoscaling.mode is Fixed; change relay.replicas instead"
