from __future__ import annotations

import pytest

from delaytopic_api.recurrence import Occurrence
from delaytopic_gateway.client.recurring import Explained, RecurrenceOptions, explained
from delaytopic_process.errors import InputError

NOON_MS = 1_795_262_400_000
"""2026-11-21T12:00:00Z, a Saturday."""
HOUR_MS = 3_600_000


def test_options_say_what_headers_do() -> None:
    options = RecurrenceOptions(cron="0 9 * * *", tz="Europe/Berlin", begin="1", until="2", times=3, catch_up="1h")

    assert options.headers() == [
        ("deliver-cron", b"0 9 * * *"),
        ("deliver-tz", b"Europe/Berlin"),
        ("deliver-from", b"1"),
        ("deliver-until", b"2"),
        ("deliver-count", b"3"),
        ("deliver-catch-up", b"1h"),
    ]


def test_a_rule_is_told_with_its_next_occurrences() -> None:
    headers = {"deliver-id": b"x", "deliver-cron": b"0 9 * * mon-fri", "deliver-tz": b"Europe/Berlin"}
    monday = NOON_MS + 44 * HOUR_MS
    told = explained(headers, NOON_MS, most=2)

    assert told == Explained(
        "At 09:00 on Monday through Friday; Europe/Berlin",
        "Europe/Berlin",
        recurs=True,
        occurrences=(Occurrence(1, monday, monday), Occurrence(2, monday + 24 * HOUR_MS, monday + 24 * HOUR_MS)),
    )
    assert told.to_json()["occurrences"][0] == {
        "number": 1,
        "nominalMs": monday,
        "dueMs": monday,
        "local": "2026-11-23T09:00:00+01:00",
    }


@pytest.mark.parametrize(
    ("headers", "due_ms", "words"),
    [
        ({"deliver-at": b"2026-11-21T13:00:00Z"}, NOON_MS + HOUR_MS, "Once, at 2026-11-21T13:00:00.000Z"),
        ({"deliver-after": b"1h"}, NOON_MS + HOUR_MS, "Once, 1h after the record's timestamp"),
        ({"deliver-after": b"5"}, NOON_MS + 5, "Once, 5 after the record's timestamp"),
    ],
)
def test_a_plain_time_is_told_too(headers: dict[str, bytes | None], due_ms: int, words: str) -> None:
    assert explained(headers, NOON_MS) == Explained(
        words, "UTC", recurs=False, occurrences=(Occurrence(1, due_ms, due_ms),)
    )


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"deliver-cron": b"0 9 * * *"}, "needs an id"),
        ({"deliver-id": b"x", "deliver-cron": b"0 0 30 2 *"}, "bad day-of-month"),
        ({"deliver-id": b"x", "deliver-at": b"2026-11-21T12:30:00Z", "deliver-ladder": b"1h"}, "it has no occurrence"),
        ({"deliver-at": b"1795262400"}, "if it is in seconds"),
        ({"deliver-after": b"\xff"}, "is not a duration"),
    ],
)
def test_what_relays_would_refuse_is_told_as_an_error(headers: dict[str, bytes | None], text: str) -> None:
    with pytest.raises(InputError, match=text):
        explained(headers, NOON_MS)
