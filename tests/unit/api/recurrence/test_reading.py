from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.records import LAST_INSTANT_MS, RECURRENCE_HEADERS, DeadLetterReason
from delaytopic_api.recurrence import (
    Cron,
    Every,
    Instant,
    Ladder,
    Local,
    Missed,
    Recurrence,
    RecurrenceError,
    Rung,
    read_recurrence,
)

NOW_MS = int(datetime.fromisoformat("2026-11-21T14:00:00Z").timestamp() * 1000)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MALFORMED = DeadLetterReason.MALFORMED_HEADER
CONTRADICTORY = DeadLetterReason.CONTRADICTORY_HEADERS


def read(**controls: str | bytes | None) -> Recurrence | None:
    """Read headers whose names are those of the arguments: `cron` for `deliver-cron`."""
    return read_recurrence(
        {
            f"deliver-{name.replace('_', '-')}": value.encode() if isinstance(value, str) else value
            for name, value in controls.items()
        },
        NOW_MS,
    )


@pytest.mark.parametrize(
    "controls",
    [{}, {"at": "1795269686270"}, {"at": "2026-11-21T14:01:26Z"}, {"after": "1h"}, {"id": "x"}, {"at": None}],
)
def test_a_plain_record_says_nothing_of_recurrence(controls: dict[str, str | bytes | None]) -> None:
    assert read(**controls) is None


def test_a_cron_expression_has_a_zone_and_begins_with_the_record() -> None:
    assert read(cron="0 9 * * mon-fri", tz="Europe/Berlin") == Recurrence(
        Cron("0 9 * * mon-fri"), "Europe/Berlin", NOW_MS
    )


def test_without_a_zone_it_is_utc() -> None:
    assert read(cron=" ".join(["0", "30", "9", "*", "*", "*"])) == Recurrence(Cron("0 30 9 * * *"), "UTC", NOW_MS)


def test_an_interval_counts_from_the_record_and_first_fires_when_one_is_over() -> None:
    assert read(every="90m") == Recurrence(Every(90 * 60_000, NOW_MS), "UTC", NOW_MS + 90 * 60_000)


def test_an_interval_may_be_milliseconds() -> None:
    assert read(every="5000") == Recurrence(Every(5_000, NOW_MS), "UTC", NOW_MS + 5_000)


def test_an_interval_may_have_an_anchor_ahead() -> None:
    start = "2026-12-01T00:00:00+01:00"
    start_ms = NOW_MS + 9 * DAY_MS + 9 * HOUR_MS

    assert read(every="24h", **{"from": start}) == Recurrence(Every(DAY_MS, start_ms), "UTC", start_ms)


def test_an_anchor_long_ago_is_moved_by_whole_intervals_to_the_first_that_is_not_before_the_record() -> None:
    recurrence = read(every="24h", **{"from": "2026-11-01T09:00:00Z"})

    assert recurrence == Recurrence(Every(DAY_MS, NOW_MS + 19 * HOUR_MS), "UTC", NOW_MS)


def test_all_bounds_are_read() -> None:
    assert read(
        cron="0 9 * * *",
        until="2027-01-01T00:00:00Z",
        count="10",
        jitter="5m",
        missed="All",
        catch_up="24h",
    ) == Recurrence(
        Cron("0 9 * * *"), "UTC", NOW_MS, NOW_MS + 40 * DAY_MS + 10 * HOUR_MS, 10, 300_000, Missed.ALL, DAY_MS
    )


def test_a_time_without_an_offset_is_that_of_a_zone() -> None:
    assert read(at="2026-11-21T14:00:00.0001", tz="Europe/Berlin") == Recurrence(
        Local(NOW_MS + 1), "Europe/Berlin", NOW_MS
    )


def test_a_ladder_counts_back_from_an_instant() -> None:
    assert read(at=str(NOW_MS + 9 * DAY_MS), ladder="1w, 1d12h,1h,0s") == Recurrence(
        Ladder(Instant(NOW_MS + 9 * DAY_MS), (Rung(7, 0), Rung(1, 12 * HOUR_MS), Rung(0, HOUR_MS), Rung(0, 0))),
        "UTC",
        NOW_MS,
    )


def test_a_ladder_counts_back_from_a_local_time() -> None:
    assert read(at="2026-11-30T09:00:00", tz="Asia/Tehran", ladder="1d") == Recurrence(
        Ladder(Local(NOW_MS + 8 * DAY_MS + 19 * HOUR_MS), (Rung(1, 0),)), "Asia/Tehran", NOW_MS
    )


@pytest.mark.parametrize(
    ("controls", "header", "says"),
    [
        ({"cron": None}, "cron", "but is null"),
        ({"cron": ""}, "cron", "but is empty"),
        ({"cron": "* * * *"}, "cron", "five fields"),
        ({"cron": "* * * * * * *"}, "cron", "five fields"),
        ({"cron": "@daily"}, "cron", "five fields"),
        ({"cron": "0 25 * * *"}, "cron", "which cannot be read: bad hour"),
        ({"cron": "0 0 30 2 *"}, "cron", "which cannot be read: bad day-of-month"),
        ({"cron": "0 0 */30 2 sun#5"}, "cron", "which never fires"),
        ({"cron": "*/0 * * * *"}, "cron", "which cannot be read: bad minute"),
        ({"cron": "0 9 * * " + ",".join(["1"] * 200)}, "cron", "256 bytes"),
        ({"cron": "0 9 * * \u0661"}, "cron", "five fields"),
        ({"every": "0s"}, "every", "of a second or more"),
        ({"every": "999ms"}, "every", "of a second or more"),
        ({"every": "1d"}, "every", "the longest unit is the hour"),
        ({"every": "-1h"}, "every", "a duration"),
        ({"every": "9" * 5000}, "every", "a duration"),
        ({"cron": "0 9 * * *", "tz": "Europe/Berln"}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "tz": "Europe"}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "tz": "../../etc/passwd"}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "tz": "localtime"}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "tz": "A" * 65}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "tz": None}, "tz", "IANA name"),
        ({"cron": "0 9 * * *", "count": "0"}, "count", "from 1 to"),
        ({"cron": "0 9 * * *", "count": "-1"}, "count", "from 1 to"),
        ({"cron": "0 9 * * *", "count": "1" * 10}, "count", "from 1 to"),
        ({"cron": "0 9 * * *", "from": "2026-11-21T14:00:00"}, "from", "with an offset"),
        ({"cron": "0 9 * * *", "from": "2026-02-30T14:00:00Z"}, "from", "with an offset"),
        ({"cron": "0 9 * * *", "from": "2026-11-21T24:00:00Z"}, "from", "with an offset"),
        ({"cron": "0 9 * * *", "from": "2026-11-21T14:00:00+24:00"}, "from", "with an offset"),
        ({"cron": "0 9 * * *", "until": str(LAST_INSTANT_MS)}, "until", "the year 9998"),
        ({"cron": "0 9 * * *", "jitter": "25h"}, "jitter", "24h at most"),
        ({"cron": "0 9 * * *", "missed": "latest"}, "missed", "Latest, All or None"),
        ({"at": "2026-11-21T14:00:00"}, "at", "header deliver-tz"),
        ({"at": "2026-02-29T14:00:00", "tz": "UTC"}, "at", "a date and a time"),
        ({"at": "9999-11-21T14:00:00", "tz": "UTC"}, "at", "the year 9998"),
        ({"at": "x", "ladder": "1h"}, "at", "RFC 3339"),
        ({"at": "1795269686270", "ladder": ""}, "ladder", "but is empty"),
        ({"at": "1795269686270", "ladder": "1h,1h"}, "ladder", "different"),
        ({"at": "1795269686270", "ladder": "1h,"}, "ladder", "between commas"),
        ({"at": "1795269686270", "ladder": ",".join(f"{n}h" for n in range(33))}, "ladder", "1 to 32"),
        ({"at": "1795269686270", "ladder": "1h" + " " * 600}, "ladder", "1 to 32"),
    ],
)
def test_what_cannot_be_read_is_malformed_and_the_header_is_named(
    controls: dict[str, str | None], header: str, says: str
) -> None:
    with pytest.raises(RecurrenceError, match=says) as caught:
        read(**controls)

    assert (caught.value.reason, caught.value.header) == (MALFORMED, f"deliver-{header}")
    assert f"header deliver-{header}" in caught.value.detail


@pytest.mark.parametrize(
    ("controls", "header", "says"),
    [
        ({"cron": "0 9 * * *", "every": "1h"}, "every", "beside that of header deliver-cron"),
        ({"every": "1h", "ladder": "1h", "at": "1795269686270"}, "ladder", "beside that of header deliver-every"),
        ({"ladder": "1h"}, "ladder", "needs header deliver-at"),
        ({"cron": "0 9 * * *", "at": "1795269686270"}, "at", "does not go with header deliver-cron"),
        ({"cron": "0 9 * * *", "after": "1h"}, "after", "does not go with header deliver-cron"),
        ({"at": "2026-11-21T14:00:00", "tz": "UTC", "after": "1h"}, "after", "does not go with header deliver-tz"),
        ({"every": "1h", "expires-at": "1795269686270"}, "expires-at", "deliver-until instead"),
        ({"at": "1795269686270", "ladder": "1h", "count": "3"}, "count", "does not go with header deliver-ladder"),
        ({"at": "1795269686270", "jitter": "3m"}, "jitter", "needs a rule"),
        ({"at": "1795269686270", "tz": "Europe/Berlin"}, "tz", "without an offset"),
        ({"every": "1h", "tz": "Europe/Berlin"}, "tz", "nothing else here depends on a zone"),
        ({"every": "1h", "jitter": "61m"}, "jitter", "longer than the interval"),
        ({"every": "1h", "missed": "All"}, "missed", "deliver-catch-up has to say"),
        ({"every": "1h", "catch-up": "1h"}, "catch-up", "All alone"),
        ({"every": "1h", "until": str(NOW_MS - 1)}, "until", "put it later"),
    ],
)
def test_what_contradicts_is_refused_and_the_header_is_named(controls: dict[str, str], header: str, says: str) -> None:
    with pytest.raises(RecurrenceError, match=says) as caught:
        read(**controls)

    assert (caught.value.reason, caught.value.header) == (CONTRADICTORY, f"deliver-{header}")


VALUES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.sampled_from(
        ["0 9 * * *", "*/5 * * * * *", "0 0 31 2-12/2 *", "1h", "7d,1h,0s", "2026-11-21T09:00:00", "UTC", "3", "All"]
    ).map(str.encode),
    st.text("0123456789*/,-#Ll \t", max_size=60).map(str.encode),
    st.text("0123456789hmswd,", max_size=60).map(str.encode),
    st.text("0123456789-:TZ+.", max_size=36).map(str.encode),
)


@given(st.dictionaries(st.sampled_from(["deliver-at", *RECURRENCE_HEADERS]), VALUES, max_size=4))
def test_whatever_the_headers_are_the_answer_is_a_rule_or_a_sentence_in_ascii(
    controls: dict[str, bytes | None],
) -> None:
    try:
        recurrence = read_recurrence(controls, NOW_MS)
    except RecurrenceError as error:
        said = error.detail
    else:
        said = ""
        assert recurrence is None or recurrence.from_ms >= NOW_MS

    assert said.isascii()
    assert len(said) < 400


@pytest.mark.parametrize(
    "expression", ["*/5 */5 */30 2 sun#5", "59 59 23 31 12 */7", "0 0 29 2 */7", "0-59 0-59 0-23 29 2 */6"]
)
def test_the_rarest_expressions_cost_no_more_than_a_moment(expression: str) -> None:
    started_s = time.process_time()

    with suppress(RecurrenceError):
        read(cron=expression)

    assert time.process_time() - started_s < 0.2
