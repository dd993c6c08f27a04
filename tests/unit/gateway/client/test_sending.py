from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from delaytopic_api import Duration
from delaytopic_api.records import Headers
from delaytopic_gateway.client.new_records import (
    Addressing,
    KeyedValue,
    OutgoingRecord,
    Timing,
    cancel_record,
    due_ms,
    generated_values,
    records_to_send,
    values_of_lines,
)
from delaytopic_gateway.client.sending import Interruption
from delaytopic_process.errors import InputError

RECORD = OutgoingRecord(b"k", b"v", [])
AFTER_5S = Timing(after=Duration("5s"))


def sent(values: list[KeyedValue], addressing: Addressing, timing: Timing, total: int = 1) -> list[OutgoingRecord]:
    return list(records_to_send(values, addressing, timing, total=total))


def test_a_delay_travels_as_it_was_written() -> None:
    records = sent([KeyedValue(None, b"tea")], Addressing(), AFTER_5S)

    assert records == [OutgoingRecord(None, b"tea", [("deliver-after", b"5s")])]


def test_a_rule_is_written_as_its_headers_and_its_first_occurrence_is_the_due_time() -> None:
    rule = (("deliver-every", b"1h"), ("deliver-count", b"3"))
    record = sent([KeyedValue(None, b"tea")], Addressing(schedule_id="tea"), Timing(recurrence=rule))[0]

    assert record.headers == [*rule, ("deliver-id", b"tea")]
    assert due_ms(record.headers, 1_795_269_686_270) == 1_795_269_686_270 + 3_600_000
    assert due_ms([("deliver-cron", b"x")], 1_795_269_686_270) is None


def test_without_a_time_the_delay_topic_decides() -> None:
    assert sent([KeyedValue(None, b"tea")], Addressing(), Timing()) == [OutgoingRecord(None, b"tea", [])]


def test_an_id_is_the_key_too_unless_a_key_is_given() -> None:
    value = [KeyedValue(None, b"v")]

    by_default = sent(value, Addressing(schedule_id="order-{n}"), AFTER_5S)
    with_key = sent(value, Addressing(schedule_id="order-{n}", key="customer-{n}"), AFTER_5S)
    own_key = sent([KeyedValue(b"own", b"v")], Addressing(schedule_id="order-{n}", key="customer"), AFTER_5S)

    headers: Headers = [("deliver-after", b"5s"), ("deliver-id", b"order-1")]
    assert [by_default[0], with_key[0], own_key[0]] == [
        OutgoingRecord(b"order-1", b"v", headers),
        OutgoingRecord(b"customer-1", b"v", headers),
        OutgoingRecord(b"own", b"v", headers),
    ]


def test_own_headers_come_first_and_may_repeat() -> None:
    addressing = Addressing(headers=(("a", "1"), ("a", "2")), to="shop.vip")

    records = sent([KeyedValue(None, b"v")], addressing, Timing(at_ms=7))

    assert records[0].headers == [("a", b"1"), ("a", b"2"), ("deliver-at", b"7"), ("deliver-to", b"shop.vip")]


def test_a_spread_reaches_from_its_start_to_its_end() -> None:
    values = list(generated_values(5, None))

    records = sent(values, Addressing(), Timing(at_ms=1_000, spread_ms=100), total=5)

    assert [record.headers for record in records] == [
        [("deliver-at", text)] for text in (b"1000", b"1025", b"1050", b"1075", b"1100")
    ]


def test_a_single_record_is_due_at_the_start_of_its_spread() -> None:
    records = sent([KeyedValue(None, b"v")], Addressing(), Timing(at_ms=1_000, spread_ms=100))

    assert records[0].headers == [("deliver-at", b"1000")]


def test_generated_values_are_numbered() -> None:
    assert [value for _, value in generated_values(2, None)] == [b"record 1", b"record 2"]
    assert [value for _, value in generated_values(2, "n{n}/{n}")] == [b"n1/1", b"n2/2"]


def test_lines_lose_their_line_ends_only() -> None:
    values = values_of_lines([b" a \n", b"b\r\n", b"\n", b"c"], None)

    assert [value.value for value in values] == [b" a ", b"b", b"", b"c"]


def test_lines_are_split_at_the_first_separator() -> None:
    assert list(values_of_lines([b"k\tv\tw\n"], "\t")) == [KeyedValue(b"k", b"v\tw")]


def test_a_line_without_separator_is_named() -> None:
    with pytest.raises(InputError, match="line 2 of the input has no key separator"):
        list(values_of_lines([b"k\tv\n", b"oops\n"], "\t"))


def test_a_cancel_goes_where_its_schedule_went() -> None:
    headers: Headers = [("deliver-id", b"order-1"), ("deliver-action", b"cancel")]

    assert cancel_record("order-1", None) == OutgoingRecord(b"order-1", None, headers)
    assert cancel_record("order-1", "customer") == OutgoingRecord(b"customer", None, headers)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("deliver-at", b"1795269686270")], 1_795_269_686_270),
        ([("deliver-after", b"5s")], 6_000),
        ([("deliver-after", b"250")], 1_250),
        ([("deliver-after", b"1s"), ("deliver-at", b"1795269686270")], 1_795_269_686_270),
        ([("deliver-at", b"1970-01-01T00:00:01Z")], 1_000),
        ([("deliver-at", b"tomorrow")], None),
        ([("deliver-after", b"-5s")], None),
        ([], None),
    ],
)
def test_the_due_time_of_a_sent_record(headers: Headers, expected: int | None) -> None:
    assert due_ms(headers, 1_000) == expected


def test_a_signal_ends_the_reading_of_records_and_those_read_before_stay() -> None:
    def interrupted() -> Iterator[OutgoingRecord]:
        yield RECORD
        signal.raise_signal(signal.SIGINT)
        yield RECORD

    with Interruption() as interruption:
        read = list(interruption.read(interrupted()))

    assert (read, interruption.times) == ([RECORD], 1)


def test_a_signal_elsewhere_is_heard_before_the_next_record_and_costs_nothing() -> None:
    read = []
    with Interruption() as interruption:
        for record in interruption.read([RECORD, RECORD]):
            signal.raise_signal(signal.SIGINT)
            read.append(record)

    assert (read, interruption.times) == ([RECORD], 1)


def test_a_signal_is_everybodys_again_afterwards() -> None:
    former = signal.getsignal(signal.SIGINT)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) != former

    assert signal.getsignal(signal.SIGINT) == former
