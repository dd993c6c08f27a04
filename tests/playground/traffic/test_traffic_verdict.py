"""The independent reader finds each fault that there can be, and none where there is none."""

from __future__ import annotations

from playground.traffic.reader import Work
from playground.traffic.records import Content, Receipt, content_of, headers_of, receipt_of, value_of
from playground.traffic.verdict import Arrival, Expected, Seen, Sent, awaited, judge

SOURCE = "shop.reminders.delayed"


def expected(records: int) -> Expected:
    return Expected(SOURCE, "shop.reminders", "run", records)


def sent(number: int, due_ms: int | None = 10_000, appended_ms: int = 1_000) -> Sent:
    return Sent(number, partition=0, offset=number, due_ms=due_ms, appended_ms=appended_ms)


def arrival(number: int, late_ms: int = 4, **claims: int | str) -> Arrival:
    said = {"due_ms": 10_000, "partition": 0, "offset": number, "sent_ms": 10_000 + late_ms - 1, "topic": SOURCE}
    return Arrival(number, 10_000, Receipt(**{**said, **claims}), 10_000 + late_ms)  # type: ignore[arg-type]


def faults(seen: Seen, records: int = 1) -> dict[str, list[int]]:
    return {name: each["first"] for name, each in judge(seen, expected(records))["faults"].items()}


def test_a_run_without_faults_tells_how_late_its_records_were() -> None:
    seen = Seen([sent(number) for number in range(4)], [arrival(number, late_ms=10 * number) for number in range(4)])

    verdict = judge(seen, expected(4))

    late_ms = {"p50": 10, "p99": 30, "max": 30}
    # Sent in the millisecond before it was due.
    early = {"early": {"count": 1, "first": [0]}}
    assert verdict == {
        "records": 4,
        "arrived": 4,
        "withdrawn": 0,
        "faults": early,
        "late_ms": late_ms,
        "silent_ms": 10,
    }


def test_silence_is_the_longest_time_without_an_arrival_from_one_partition() -> None:
    arrivals = [
        arrival(0, 4),
        arrival(1, 10),
        arrival(2, 40, partition=1),
        arrival(3, 90),
        arrival(4, 100, partition=1),
    ]

    verdict = judge(Seen([sent(number) for number in range(5)], arrivals), expected(5))

    assert verdict["silent_ms"] == 80


def test_a_record_that_did_not_arrive_is_lost_and_awaited_until_then() -> None:
    seen = Seen([sent(0), sent(1)], [arrival(0)])

    assert awaited(seen, expected(2)) == {1}
    assert faults(seen, 2) == {"lost": [1]}


def test_a_record_that_the_broker_acknowledged_and_does_not_have_is_told() -> None:
    seen = Seen([sent(0)], [arrival(0)])

    assert awaited(seen, expected(2)) == {1}
    assert faults(seen, 2) == {"not_accepted": [1]}


def test_a_record_that_arrived_twice_is_told_once() -> None:
    assert faults(Seen([sent(0)], [arrival(0), arrival(0), arrival(0)])) == {"twice": [0]}


def test_a_record_that_its_sender_doubled_is_not_the_relays_fault() -> None:
    assert faults(Seen([sent(0), sent(0)], [arrival(0)])) == {"sent_twice": [0]}


def test_sent_before_it_was_due_is_early_even_if_it_was_appended_later() -> None:
    assert faults(Seen([sent(0)], [arrival(0, sent_ms=9_999)])) == {"early": [0]}


def test_a_cancel_in_good_time_has_to_take_effect() -> None:
    cancelled = [sent(0), sent(0, due_ms=None, appended_ms=8_000)]

    assert faults(Seen(cancelled, [])) == {}
    assert awaited(Seen(cancelled, []), expected(1)) == set()
    assert faults(Seen(cancelled, [arrival(0)])) == {"unwanted": [0]}


def test_of_a_cancel_that_races_with_the_delivery_both_outcomes_are_right() -> None:
    cancelled = [sent(0), sent(0, due_ms=None, appended_ms=8_001)]

    assert faults(Seen(cancelled, [])) == {}
    assert faults(Seen(cancelled, [arrival(0)])) == {}


def test_a_receipt_has_to_name_the_very_record() -> None:
    for wrong in ({"offset": 7}, {"partition": 7}, {"due_ms": 9_999}, {"topic": "shop.other"}):
        assert faults(Seen([sent(0)], [arrival(0, **wrong)])) == {"misattributed": [0]}
    assert faults(Seen([sent(0)], [arrival(0)._replace(receipt=None)])) == {"misattributed": [0]}


def test_what_nobody_sent_is_unknown_and_what_was_refused_is_told() -> None:
    assert faults(Seen([sent(0)], [arrival(0), arrival(7)])) == {"unknown": [7]}
    assert faults(Seen([sent(0)], [], [0])) == {"refused": [0]}


def test_lateness_counts_from_when_the_source_had_the_record() -> None:
    overdue = Seen([sent(0, appended_ms=10_300)], [arrival(0, late_ms=500)])

    assert judge(overdue, expected(1))["late_ms"] == {"p50": 200, "p99": 200, "max": 200}


def test_records_are_read_as_they_were_written() -> None:
    for content in (Content("run-1.a", 7, 1_795_269_686_270), Content("run", 0, None)):
        assert content_of(value_of(content)) == content
    assert content_of(b"something else") is None
    assert content_of(None) is None


def test_headers_ask_for_a_delivery_or_withdraw_it() -> None:
    assert headers_of(Content("run", 7, 10_000), None) == [("deliver-at", b"10000")]
    assert headers_of(Content("run", 7, None), b"run-7") == [("deliver-id", b"run-7"), ("deliver-action", b"cancel")]


def test_a_receipt_is_read_from_its_header() -> None:
    headers: list[tuple[str, bytes | None]] = [("other", None), ("delay-receipt", b"1:2:3:4:shop.a:b")]

    assert receipt_of(headers) == Receipt(1, 2, 3, 4, "shop.a:b")
    assert receipt_of([("delay-receipt", None)]) is None


def test_what_is_to_be_read_survives_the_command_line() -> None:
    work = Work(Expected(SOURCE, "shop.reminders", "run", 7, settle_ms=5), patience_s=3, quiet_s=1)

    assert Work.decode(work.encode()) == work
