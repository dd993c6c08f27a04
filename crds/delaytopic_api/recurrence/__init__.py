"""Recurrence: the rules by which one record is delivered again and again, and the instants that follow from them. Pure.

Time, zones and ids are arguments. `read_recurrence` takes the headers apart, `first_occurrence` and `next_occurrence`
say what is delivered when, `upcoming` and `in_words` tell people. `passed_over` and `left_out` judge what was.
"""

from __future__ import annotations

from delaytopic_api.recurrence.occurrences import (
    MOST_MISSED_COUNTED,
    Occurrence,
    Passed,
    first_occurrence,
    left_out,
    next_occurrence,
    passed_over,
    upcoming,
)
from delaytopic_api.recurrence.reading import (
    LONGEST_CRON,
    MOST_RUNGS,
    SHORTEST_INTERVAL_MS,
    RecurrenceError,
    read_recurrence,
)
from delaytopic_api.recurrence.rules import Cron, Every, Instant, Ladder, Local, Missed, Recurrence, Rule, Rung
from delaytopic_api.recurrence.words import in_words
from delaytopic_api.recurrence.zones import ZONES, Zones, instant_of_wall

__all__ = [
    "LONGEST_CRON",
    "MOST_MISSED_COUNTED",
    "MOST_RUNGS",
    "SHORTEST_INTERVAL_MS",
    "ZONES",
    "Cron",
    "Every",
    "Instant",
    "Ladder",
    "Local",
    "Missed",
    "Occurrence",
    "Passed",
    "Recurrence",
    "RecurrenceError",
    "Rule",
    "Rung",
    "Zones",
    "first_occurrence",
    "in_words",
    "instant_of_wall",
    "left_out",
    "next_occurrence",
    "passed_over",
    "read_recurrence",
    "upcoming",
]
