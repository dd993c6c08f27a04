"""Our slots beside those of robfig/cron (Go) and of Spring's CronExpression, for two days around each change of clock.

`answers.tsv` is written by `tests/data/api/recurrence/peers/write.py`; docs/explanation/recurrence.md has the reasons.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.support.paths import ROOT

from delaytopic_api.recurrence import Cron

MINUTE_MS = 60_000
GAP = "a time that a gap leaves out is not made up for"
FOLD = "a time of the clock comes twice in a fold"
LOST = "a time that the clock shows is missing"
ENDLESS = "the next time is the same one again, for ever"

OF_BOTH_IN_GAPS = {
    "Europe/Berlin": 6,
    "America/New_York": 6,
    "Australia/Lord_Howe": 4,
    "America/Santiago": 4,
    "Asia/Beirut": 4,
    "Asia/Tehran": 4,
    "Africa/Casablanca": 6,
}
OF_BOTH_IN_FOLDS = {
    "Europe/Berlin": 10,
    "America/New_York": 2,
    "America/Santiago": 2,
    "Asia/Beirut": 2,
    "Asia/Tehran": 2,
    "Africa/Casablanca": 10,
}
DIFFERENCES = {
    ("robfig", GAP): OF_BOTH_IN_GAPS,
    ("Spring", GAP): OF_BOTH_IN_GAPS,
    ("robfig", FOLD): OF_BOTH_IN_FOLDS,
    ("Spring", FOLD): OF_BOTH_IN_FOLDS,
    ("robfig", LOST): {"Australia/Lord_Howe": 16, "Asia/Tehran": 1},
    ("Spring", LOST): {"Australia/Lord_Howe": 4, "America/Santiago": 22, "Asia/Beirut": 22, "Asia/Tehran": 22},
    ("Spring", ENDLESS): {"Australia/Lord_Howe": 4},
}


def ours(expression: str, zone: ZoneInfo, first: int, last: int) -> set[int]:
    found: set[int] = set()
    slot_ms = Cron(expression).slot_after(first * MINUTE_MS - 1, zone)
    while slot_ms is not None and slot_ms < last * MINUTE_MS:
        found.add(slot_ms // MINUTE_MS)
        slot_ms = Cron(expression).slot_after(slot_ms, zone)
    return found


def shown(minute: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(minute * 60, zone)


def kind_of_missing(minute: int, zone: ZoneInfo) -> str:
    """Tell why a peer has no slot where we have one."""
    change = shown(minute, zone).utcoffset() != shown(minute - 1, zone).utcoffset()
    forward = (shown(minute, zone).utcoffset() or timedelta()) > (shown(minute - 1, zone).utcoffset() or timedelta())
    return GAP if change and forward else LOST


def kind_of_more(minute: int, zone: ZoneInfo) -> str:
    """Tell why a peer has a slot where we have none."""
    return FOLD if shown(minute, zone).fold else "a time that no clock shows"


def test_ours_differ_from_those_of_peers_around_changes_of_clock_alone_and_as_told() -> None:
    differences: Counter[tuple[str, str, str]] = Counter()
    rows = (ROOT / "tests/data/api/recurrence/peers/answers.tsv").read_text(encoding="utf-8").splitlines()
    for row in rows:
        name, expression, first, last, *answers = row.split("\t")
        zone, start = ZoneInfo(name), int(first)
        slots = ours(expression, zone, start, int(last))
        for peer, answer in zip(("robfig", "Spring"), answers, strict=True):
            told = [start + int(minute) for minute in answer.split() if minute != "again"]
            if answer.endswith("again"):
                differences[peer, name, ENDLESS] += 1
                continue
            differences.update((peer, name, kind_of_missing(minute, zone)) for minute in slots - {*told})
            differences.update((peer, name, kind_of_more(minute, zone)) for minute in {*told} - slots)

    assert len(rows) == 377
    assert differences == {
        (peer, zone, kind): number for (peer, kind), zones in DIFFERENCES.items() for zone, number in zones.items()
    }


def test_the_two_years_are_those_that_the_answers_are_of() -> None:
    rows = (ROOT / "tests/data/api/recurrence/peers/answers.tsv").read_text(encoding="utf-8").splitlines()
    years = {datetime.fromtimestamp(int(row.split("\t")[2]) * 60, UTC).year for row in rows}

    assert years == {2021, 2022}
