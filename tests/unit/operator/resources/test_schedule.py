"""The longest time between two runs of a cron line."""

from __future__ import annotations

import pytest

from delaytopic_operator.resources.schedule import longest_gap_ms

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("line", "gap_ms"),
    [
        ("* * * * *", MINUTE_MS),
        ("*/15 * * * *", 15 * MINUTE_MS),
        ("7 * * * *", HOUR_MS),
        ("@hourly", HOUR_MS),
        ("10,20 * * * *", 50 * MINUTE_MS),
        ("0 */6 * * *", 6 * HOUR_MS),
        ("0 8-18/2 * * *", 14 * HOUR_MS),
        ("0 22/2 * * *", DAY_MS),
        ("0 20/2 * * *", 22 * HOUR_MS),
        ("30 3 * * *", DAY_MS),
        ("@daily", DAY_MS),
        ("0 3 * * 1-5", 3 * DAY_MS),
        ("0 3 * * MON-FRI", 3 * DAY_MS),
        ("0 3 * * 7", 7 * DAY_MS),
        ("0 3 ? * sun", 7 * DAY_MS),
        ("0 3 1 * *", 31 * DAY_MS),
        ("0 3 1 jan,jul *", 184 * DAY_MS),
        ("0 3 29 2 *", 1_461 * DAY_MS),
        # With both kinds of days restricted, one of them is enough.
        ("0 3 1 * 1", 7 * DAY_MS),
        ("0 3 */2 * 1", 2 * DAY_MS),
        ("0 3 */2 * *", 2 * DAY_MS),
    ],
)
def test_the_longest_gap_is_that_of_the_line(line: str, gap_ms: int) -> None:
    assert longest_gap_ms(line) == gap_ms


@pytest.mark.parametrize(
    "line",
    ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *",
     "H * * * *", "a * * * *", "* * * mon *", "0 0 31 2 *", "@reboot", "1,,2 * * * *"],
)  # fmt: skip
def test_what_is_no_line_or_never_comes_has_none(line: str) -> None:
    assert longest_gap_ms(line) is None
