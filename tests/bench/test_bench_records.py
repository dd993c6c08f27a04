from __future__ import annotations

from collections import Counter

import pytest
from bench.records import PARTITIONS, VALUE_BYTES, headers_of, key_of, partition_of, sequence_of, spread, value_of
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(0, 9_999_999_999))
def test_a_key_of_ten_bytes_holds_the_sequence_number(sequence: int) -> None:
    key = key_of(sequence)

    assert (len(key), sequence_of(key)) == (10, sequence)


@pytest.mark.parametrize("key", [None, b"", b"order-7"])
def test_a_foreign_key_holds_no_sequence_number(key: bytes | None) -> None:
    found = sequence_of(key)

    assert found == -1


def test_values_have_their_size_and_differ() -> None:
    values = {value_of(sequence) for sequence in range(1_000)}

    assert {len(value) for value in values} == {VALUE_BYTES}
    assert len(values) == 64


def test_a_due_time_comes_behind_the_user_headers() -> None:
    plain, timed = headers_of(None), headers_of(1_795_269_686_270)

    assert len(plain) == 3
    assert timed == [*plain, ("deliver-at", b"1795269686270")]


def test_due_times_are_spread_evenly_and_the_same_for_a_seed() -> None:
    due_ms = spread(10_000, 5_000, 15_000, seed=1)

    per_second = Counter(due // 1_000 for due in due_ms)
    assert set(per_second) == set(range(5, 15))
    assert min(per_second.values()) > 900
    assert due_ms == spread(10_000, 5_000, 15_000, seed=1)


def test_all_partitions_get_equally_many() -> None:
    counts = Counter(partition_of(sequence) for sequence in range(1_000))

    assert counts == dict.fromkeys(range(PARTITIONS), 250)
