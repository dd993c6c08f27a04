from __future__ import annotations

import json
from dataclasses import replace

from delaytopic_api import Receipt
from delaytopic_gateway.client.watching import Arrival, json_line, preview, receipt_of, table_head, table_line

RECEIPT = Receipt(1_795_262_400_000, 3, 17, 1_795_262_400_007, "shop.delayed", 1_795_262_300_000)
ARRIVAL = Arrival(1, 42, 1_795_262_400_050, b"customer-1", b"tea is ready", RECEIPT)


def test_the_last_receipt_counts() -> None:
    older = Receipt(1, 2, 3, 4, "t").encode()

    assert receipt_of([("delay-receipt", older), ("x", None), ("delay-receipt", RECEIPT.encode())]) == RECEIPT


def test_no_receipt_or_a_strange_one_is_none() -> None:
    assert receipt_of([]) is None
    assert receipt_of(None) is None
    assert receipt_of([("delay-receipt", b"paid")]) is None


def test_a_line_shows_how_long_after_its_due_time_a_record_was_sent_and_arrived() -> None:
    line = table_line(ARRIVAL, now_ms=1_795_262_400_060, width=140)

    assert line.split()[1:] == ["+7", "ms", "+50", "ms", "customer-1", "tea", "is", "ready"]
    assert table_head().splitlines()[1].split() == ["DUE", "SENT", "ARRIVED", "KEY", "VALUE"]


def test_a_clock_behind_the_relays_shows() -> None:
    early = replace(ARRIVAL, arrived_ms=1_795_262_399_990)

    assert "+7 ms     -10 ms" in table_line(early, now_ms=1_795_262_400_060, width=140)


def test_a_line_fits_the_terminal() -> None:
    long = Arrival(1, 42, None, b"k" * 500, b"v" * 500, None)

    assert len(table_line(long, now_ms=0, width=80)) == 80


def test_a_json_line_has_everything() -> None:
    assert json.loads(json_line(ARRIVAL)) == {
        "partition": 1,
        "offset": 42,
        "timestampMs": 1_795_262_300_000,
        "dueMs": 1_795_262_400_000,
        "sentMs": 1_795_262_400_007,
        "arrivedMs": 1_795_262_400_050,
        "latenessMs": 7,
        "arrivedAfterDueMs": 50,
        "source": "shop.delayed:3:17",
        "key": "customer-1",
        "value": "tea is ready",
    }


def test_a_record_that_no_relay_delivered_has_no_times() -> None:
    line = json.loads(json_line(Arrival(0, 0, None, None, b"\xff", None)))

    assert {name: line[name] for name in ("dueMs", "sentMs", "latenessMs", "source", "key")} == dict.fromkeys(
        ("dueMs", "sentMs", "latenessMs", "source", "key")
    )


def test_previews_are_text_in_one_line_or_hexadecimal() -> None:
    assert preview("Grüße\n\tan alle".encode(), limit=40) == "Grüße  an alle"
    assert preview(bytes(range(0x80, 0x90)), limit=8) == "8081828…"
    assert preview("é".encode() * 30, limit=9) == "é" * 8 + "…"
    assert preview(None, limit=8) == "-"
    assert preview(b"", limit=8) == ""
