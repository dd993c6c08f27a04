from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.records import Headers
from delaytopic_relay.delivery.outbound import record_batch_bytes

NULLABLE = st.none() | st.binary(max_size=300)
HEADERS: st.SearchStrategy[Headers | None] = st.none() | st.lists(
    st.tuples(st.text(max_size=80), NULLABLE), max_size=70
)

# Found on a broker 4.3: a topic with max.message.bytes of this takes the record, and with one less refuses it.
SMALLEST_LIMIT: list[tuple[bytes | None, bytes | None, Headers | None, int]] = [
    (None, None, None, 68),
    (b"k", b"v", [], 70),
    (b"", b"", [("", b"")], 70),
    (b"k" * 63, b"v" * 64, [("a", None)], 200),
    (b"k" * 64, b"v" * 8_191, [("\u00fc", b"x" * 63)] * 3, 8_528),
    (None, b"v" * 8_192, [("h" * 64, b"")] * 63, 12_485),
    (b"k", b"x" * 100_000, [("h", b"1")] * 64, 100_330),
    (b"k", b"x" * 1_048_576, None, 1_048_651),
]


@pytest.mark.parametrize(("key", "value", "headers", "limit"), SMALLEST_LIMIT)
def test_the_size_is_the_smallest_limit_at_which_a_broker_takes_the_record(
    key: bytes | None, value: bytes | None, headers: Headers | None, limit: int
) -> None:
    assert record_batch_bytes(key, value, headers) == limit


@given(NULLABLE, NULLABLE, HEADERS)
def test_one_more_byte_of_value_adds_a_byte_and_at_most_two_longer_lengths(
    key: bytes | None, value: bytes | None, headers: Headers | None
) -> None:
    smaller = record_batch_bytes(key, value or b"", headers)

    assert 1 <= record_batch_bytes(key, (value or b"") + b"x", headers) - smaller <= 3
