"""Points in time to the minute."""

from __future__ import annotations

import pytest

from delaytopic_api.errors import InvalidText
from delaytopic_api.values import WholeMinute


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("2026-11-21T02:00:00Z", 1_795_226_400_000),
    ],
)
def test_a_whole_minute_is_a_time_with_an_offset(text: str, ms: int) -> None:
    assert WholeMinute(text).ms == ms


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T02:00:00",
        "2026-11-21T02:00:01Z",
        "2026-11-21T02:00:00.000Z",
        "2026-11-21 02:00:00Z",
        "2026-11-21T02:00Z",
        "2026-02-30T02:00:00Z",
        "2026-11-21T25:00:00Z",
        "2026-11-21T02:00:00+25:00",
        "٢026-11-21T02:00:00Z",
        "",
    ],
)
def test_what_is_no_beginning_of_a_minute_is_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        WholeMinute(text)
