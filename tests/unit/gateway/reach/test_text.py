"""Records that wait and records that could not be delivered, as lines for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.relay.backlog.listings import pending_list

from delaytopic_api.relay import DueBin, PendingRecord, PendingShard
from delaytopic_gateway.client.pending import report
from delaytopic_gateway.client.relay_listing import RelayAnswer
from delaytopic_gateway.dead_letters.documents import DeadLetterDocument, DeadLetterPage
from delaytopic_gateway.documents import record_page
from delaytopic_gateway.reach.text import dead_letters_lines, pending_lines

NOW_MS = 1_795_269_600_000
RECORDS = [
    PendingRecord(
        due_ms=NOW_MS + 90_000,
        partition=0,
        offset=17,
        target="shop.reminders",
        id="order-17",
        key="k",
        value_bytes=1_234,
    ),
    PendingRecord(
        due_ms=NOW_MS + 7_200_000, partition=0, offset=3, target="shop.other", key_base64="/w==", key_bytes=1
    ),
]


def lines(*problems: str, of_all: bool = False, **changes: Any) -> Sequence[str]:
    """The lines of a relay's list, and of others that do not answer."""
    listed = {"pending": 2, "shards": [PendingShard(partition=0, listed=True)], "records": RECORDS, **changes}
    told = [RelayAnswer("http://a", pending_list(**listed)), *(RelayAnswer(each, problem="gone") for each in problems)]
    page = record_page(report("reminders", told, 100))
    return [*pending_lines(page, of_all=of_all, now_ms=NOW_MS, width=200)]


def test_lines_of_the_table_say_when_whence_and_whither() -> None:
    head, first, second = (line.split() for line in lines()[3:])

    assert head == ["DUE", "IN", "SOURCE", "TARGET", "ID", "KEY", "BYTES"]
    assert first[-6:] == ["1m30s", "0:17", "shop.reminders", "order-17", "k", "1,234"]
    assert second[-6:] == ["2h", "0:3", "shop.other", "-", "base64:/w==", "-"]


def test_the_table_says_why_it_is_not_complete() -> None:
    assert lines("http://b")[-1] == "not complete: http://b gone"


def test_the_summary_counts_and_adds_up_what_is_due() -> None:
    bins = [
        DueBin(up_to_ms=NOW_MS + edge_ms, records=records)
        for edge_ms, records in ((1_000, 0), (5_000, 2), (100_000, 1_200))
    ]

    found = lines(pending=12_480, overdue=1, next_due_ms=NOW_MS + 90_000, ingest_lag=5, due_histogram=bins)

    assert found[0] == "shop/reminders (source shop.reminders.delayed)"
    assert found[1].startswith("12,480 pending, 1 overdue, next due ")
    assert found[1].endswith(", 5 not yet taken in")
    assert found[2] == "due within 5s: 2, 1m40s: 1,202"


def test_what_is_counted_and_not_listed_was_withdrawn() -> None:
    whole, part, cut = lines(pending=5, of_all=True), lines(pending=5), lines("http://b", pending=5, of_all=True)

    assert [each[1] for each in (whole, part, cut)] == [
        "5 pending, 0 overdue, 3 of them cancelled, replaced or just delivered",
        "5 pending, 0 overdue",
        "5 pending, 0 overdue",
    ]


def test_a_key_cannot_break_out_of_its_line() -> None:
    nasty = RECORDS[0].model_copy(update={"key": "a\x1b[2J\nb" + "x" * 100})

    assert "a [2J bxxxxxxxxxxxxxxxx…" in lines(records=[nasty])[4]


def test_a_line_of_a_dead_letter_stays_short_whatever_strangers_wrote() -> None:
    letter = DeadLetterDocument(
        place="0:17",
        at_ms=NOW_MS,
        reason="a\x1b[2J" * 10,
        detail="b\n" * 1_000,
        source_partition=3,
        source_offset=4,
        key="c\n" * 500,
        value_bytes=1_234,
    )
    page = DeadLetterPage(
        dead_letters=[letter], reasons={"a\n": 2}, looked_at=2, next=None, complete=True, notes=["a note"]
    )

    _, line, *rest = dead_letters_lines(page, now_ms=NOW_MS)

    assert (line.isprintable(), len(line) < 500) == (True, True)
    assert rest == ["2 dead letters: 2 a ", "a note"]


def test_without_dead_letters_the_sum_says_so() -> None:
    page = DeadLetterPage(dead_letters=[], reasons={}, looked_at=0, next=None, complete=True, notes=[])

    assert [*dead_letters_lines(page, now_ms=NOW_MS)][1:] == ["0 dead letters"]
