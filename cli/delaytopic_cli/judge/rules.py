"""The audit's rules from what is in force for a DelayTopic."""

from __future__ import annotations

from delaytopic_api import Settings
from delaytopic_api.values import Ids
from delaytopic_cli.judge.reading import Rules


def rules_of(settings: Settings) -> Rules:
    """What the DelayTopic says about its records, for reading them in the audit."""
    schedule = settings.schedule
    return Rules(
        target=settings.target.topic,
        max_delay_ms=schedule.max_delay.ms,
        allowed_targets=tuple(settings.allowed_targets),
        default_delay_ms=schedule.default_delay.ms if schedule.default_delay is not None else None,
        fixed_delay_ms=schedule.delay.ms if schedule.delay is not None else None,
        uses_ids=schedule.ids is Ids.BY_HEADER,
    )
