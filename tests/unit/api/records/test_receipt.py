from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import MalformedHeader, Receipt
from delaytopic_api.records import receipt_form

ON_THE_WIRE = b"1795269686270:3:12345:1795269686271:shop.reminders.delayed"
RECEIPT = Receipt(1795269686270, 3, 12345, 1795269686271, "shop.reminders.delayed")

topics = st.text("abcXYZ019._-", min_size=1, max_size=249)
receipts = st.builds(
    Receipt,
    due_ms=st.integers(-(10**18), 10**18),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    sent_ms=st.integers(0, 10**18),
    topic=topics,
)


def test_the_receipt_on_the_wire_is_due_partition_offset_sent_and_topic() -> None:
    assert (RECEIPT.encode(), Receipt.parse(ON_THE_WIRE)) == (ON_THE_WIRE, RECEIPT)


@given(receipts)
def test_a_receipt_survives_the_way_over_the_wire(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.encode()) == receipt


def test_the_form_of_an_instant_writes_the_same_as_the_receipt() -> None:
    form = receipt_form("shop.reminders.delayed", 3, 1795269686271)

    assert form % (1795269686270, 12345) == ON_THE_WIRE


def test_a_name_that_looks_like_a_format_is_written_as_it_is() -> None:
    assert receipt_form("100%d", 2, 4) % (1, 3) == b"1:2:3:4:100%d"


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
    ],
)
def test_anything_else_is_not_a_receipt(value: bytes | None) -> None:
    with pytest.raises(MalformedHeader, match="is not a delivery receipt: <due>:<partition>:<offset>:<sent>:<topic>"):
        Receipt.parse(value)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_receipt_or_refused(value: bytes) -> None:
    try:
        receipt = Receipt.parse(value)
    except MalformedHeader:
        return
    assert Receipt.parse(receipt.encode()) == receipt
