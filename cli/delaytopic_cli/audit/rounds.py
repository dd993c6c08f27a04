"""Audits that go on: round after round, each with the DelayTopics that are in the file by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from delaytopic_api import Duration, Settings
from delaytopic_api.errors import ApiError
from delaytopic_cli.audit.publishing import fail
from delaytopic_process.errors import InputError

Topics = Sequence[Settings]


def audit_in_rounds(
    every: Duration,
    topics: Topics,
    *,
    read: Callable[[], Topics],
    audit_all: Callable[[Topics], object],
    clock_s: Callable[[], float],
    sleep: Callable[[float], object],
) -> NoReturn:
    """Audit so often: `topics` in the first round, and what `read` returns in each later one.

    The process may be ended at any moment: what a run has begun, the next one carries out.
    """
    while True:
        began_s = clock_s()
        audit_all(topics)
        sleep(max(0.0, began_s + every.ms / 1_000 - clock_s()))
        topics = _read_again(read, topics)


def _read_again(read: Callable[[], Topics], before: Topics) -> Topics:
    """Return the DelayTopics of the file; those of before, and say why, while it cannot be used."""
    try:
        return read()
    except (InputError, ApiError) as error:
        fail(error)
        return before
