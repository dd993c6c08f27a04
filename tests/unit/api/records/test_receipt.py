from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import MalformedHeader, Receipt
from delaytopic_api.records import ReceiptForm

ON_THE_WIRE = b"1795269686270:3:12345@1795269600000:1795269686271:shop.reminders.delayed"
RECEIPT = Receipt(1795269686270, 3, 12345, 1795269686271, "shop.reminders.delayed", 1795269600000)

topics = st.text("abcXYZ019._-", min_size=1, max_size=249)
receipts = st.builds(
    Receipt,
    due_ms=st.integers(-(10**18), 10**18),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    sent_ms=st.integers(0, 10**18),
    topic=topics,
    timestamp_ms=st.none() | st.integers(0, 10**18),
)


def test_the_receipt_on_the_wire_is_due_partition_offset_and_timestamp_sent_and_topic() -> None:
    assert (RECEIPT.encode(), Receipt.parse(ON_THE_WIRE)) == (ON_THE_WIRE, RECEIPT)


def test_the_receipt_of_a_record_without_a_timestamp_has_none() -> None:
    receipt, text = RECEIPT._replace(timestamp_ms=None), ON_THE_WIRE.replace(b"@1795269600000", b"")

    assert (receipt.encode(), Receipt.parse(text)) == (text, receipt)


@given(receipts)
def test_a_receipt_survives_the_way_over_the_wire(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.encode()) == receipt


def test_the_form_of_an_instant_writes_the_same_as_the_receipt() -> None:
    form = ReceiptForm.of("shop.reminders.delayed", 3, 1795269686271)

    assert form.timed % (1795269686270, 12345, 1795269600000) == ON_THE_WIRE
    assert form.timeless % (1795269686270, 12345) == RECEIPT._replace(timestamp_ms=None).encode()


def test_a_name_that_looks_like_a_format_is_written_as_it_is() -> None:
    form = ReceiptForm.of("100%d", 2, 4)

    assert (form.fill(1, 3, 5), form.fill(1, 3, None)) == (b"1:2:3@5:4:100%d", b"1:2:3:4:100%d")


def test_lateness_is_sent_minus_due() -> None:
    assert RECEIPT.lateness_ms == 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"1:2:3:4",
        b"1:2:3:4:",
        b"1:2:3:4:a:b",
        b"x:2:3:4:a",
        b"1:-2:3:4:a",
        b" 1:2:3:4:a",
        b"1_0:2:3:4:a",
        b"1:2:3:4:a\n",
        b"1:2:3:4:\xff",
        b"1:2:3@:4:a",
        b"1:2:3@-1:4:a",
        b"1:2@3:4:5:a",
    ],
)
def test_anything_else_is_not_a_receipt(value: bytes | None) -> None:
    with pytest.raises(MalformedHeader, match="is not a delivery receipt: <due>:<partition>:<offset>"):
        Receipt.parse(value)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_receipt_or_refused(value: bytes) -> None:
    try:
        receipt = Receipt.parse(value)
    except MalformedHeader:
        return
    assert Receipt.parse(receipt.encode()) == receipt
