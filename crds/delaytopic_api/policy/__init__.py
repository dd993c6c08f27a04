"""Rules over several documents: what a class allows, and the settings that follow from class and topic."""

from __future__ import annotations

from delaytopic_api.policy.access import TopicsInUse, refusals, revocations
from delaytopic_api.policy.reading_rules import rules_mark
from delaytopic_api.policy.recurring import NEEDS_IDS, recurring_refusals, recurring_slots, takes_ids
from delaytopic_api.policy.resolve import LATENESS_OF_PRECISION, RETENTION_MARGIN, mark_of, relay_config

__all__ = [
    "LATENESS_OF_PRECISION",
    "NEEDS_IDS",
    "RETENTION_MARGIN",
    "TopicsInUse",
    "mark_of",
    "recurring_refusals",
    "recurring_slots",
    "refusals",
    "relay_config",
    "revocations",
    "rules_mark",
    "takes_ids",
]
