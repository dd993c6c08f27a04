"""Names of tables and figures, by which results, goals, tables and plots find each other. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

Name = tuple[str, str, str]
"""Table, case, figure."""


class Table(StrEnum):
    """The tables of a report, in their order."""

    THROUGHPUT = "throughput"
    BACKLOG = "backlog of ten minutes"
    DIALECTS = "dialects, inside the horizon"
    PAST_DUE = "past due"
    LATENESS = "lateness at the target"
    BURST = "due in one instant"
    RESTART = "killed and started again in place"
    PENDING = "with so many pending"
    OUTCOMES = "outcomes on and off"
    RECURRING = "records that recur"


RATE: Final = "records/s"
INTO, OUT, MEMORY = "in, records/s", "out, records/s", "relay's peak memory"
NULL, TRANSACTIONAL_NULL = "null relay", "null relay, transactional"
OF_NULL, OF_PLAIN, OF_NATIVE, OF_DESIGN = "of null", "of AtLeastOnce", "of native", "of the Redis design"
OF_PURE: Final = "of the same in Python alone"
WRITTEN_OF_NATIVE: Final = "written, of native"
"""The rate in records written, where a delivery is several."""
P50, P99, P999, LONGEST = "p50", "p99", "p99.9", "max"
P99_OF_DESIGN: Final = "p99 of the Redis design"
LAST: Final = "until the last"
FIRST, CAUGHT_UP, TWICE = "until the first delivery", "until caught up", "twice"
START, OF_SMALLER = "start to first delivery", "in and out, of that at 100,000"
HELD: Final = "in the backend, a record"
DESIGN: Final = "Redis design"
APPENDED: Final = ", when appended"
TWO_RELAYS: Final = ", 2 relays"
OFF, ON, OFF_AGAIN = "off", "on", "off again"
OF_OFF: Final = "of off"
RECURS, PLAINLY = "an occurrence", "a plain delivery at the same time"
COST, OF_PLAINLY = "processor time of the relay", "of a plain delivery"


def at_rate(who: str, per_second: int) -> str:
    """Name a load."""
    return f"{who}, {per_second:,}/s"


def with_pending(backend: str, guarantee: str, pending: int) -> str:
    """Name a size of a backlog."""
    return f"{backend}, {guarantee}, {pending:,}"
