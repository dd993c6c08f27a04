"""Numbers, times and durations as the report's text. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from delaytopic_audit.report.objectives import percent_text

NOTHING = "\u2013"


def number(value: int) -> str:
    """Return a number with thousands set apart."""
    return f"{value:,}"


def instant(moment_ms: int) -> str:
    """Return a time to the second, UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S").removesuffix(":00")


def instant_ms(moment_ms: int) -> str:
    """Return a time to the millisecond, UTC."""
    return datetime.fromtimestamp(moment_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.") + f"{moment_ms % 1000:03d}"


def milliseconds(value: float | None) -> str:
    """Return a span in the unit that people would use."""
    if value is None:
        return NOTHING
    for limit, unit_ms, unit in ((1_000, 1, "ms"), (60_000, 1_000, "s"), (3_600_000, 60_000, "min")):
        if abs(value) < limit:
            return f"{value / unit_ms:.3g} {unit}"
    return f"{value / 3_600_000:.3g} h"


def rough_length(length_ms: int) -> str:
    """Return a length of time as people say it: what lies days ahead is not known to the minute."""
    if length_ms < 2 * 3_600_000:
        return f"{max(1, round(length_ms / 60_000))} min"
    if length_ms < 48 * 3_600_000:
        return f"{length_ms / 3_600_000:.1f} h"
    return f"{length_ms / 86_400_000:.1f} days"


def share(part: int, whole: int) -> str:
    """Return a share as percent, never rounded up."""
    return percent_text(Fraction(part, whole)) if whole else NOTHING
