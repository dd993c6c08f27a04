from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import DeadLetter, MalformedHeader
from delaytopic_api.records import UNLIMITED, DeadLetterReason, Headers, dead_letter_headers, parse_dead_letter

LETTER = DeadLetter("malformed-header", "deliver-at is no time: “soon”", "shop.delayed", 3, 12345, 1795269686270)

letters = st.builds(
    DeadLetter,
    reason=st.sampled_from(DeadLetterReason).map(str),
    detail=st.text(max_size=60).filter(lambda text: "\ud800" not in text),
    topic=st.text("abcXYZ019._-", min_size=1, max_size=249),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    at_ms=st.integers(0, 2**62),
    omitted_bytes=st.none() | st.integers(0, 2**31),
    source_until=st.none() | st.sampled_from([UNLIMITED, "2026-12-21T14:01:26Z"]),
)
headers = st.lists(st.tuples(st.sampled_from(["a", "deliver-at", "delay-receipt"]), st.none() | st.binary(max_size=5)))


def test_a_dead_letter_says_why_whence_and_when() -> None:
    assert dead_letter_headers(LETTER) == [
        ("dead-letter-reason", b"malformed-header"),
        ("dead-letter-detail", "deliver-at is no time: “soon”".encode()),
        ("dead-letter-source", b"shop.delayed:3:12345"),
        ("dead-letter-at", b"1795269686270"),
    ]


def test_a_dead_letter_without_its_value_says_how_large_that_was_and_until_when_the_source_has_it() -> None:
    too_large = LETTER._replace(reason="too-large", omitted_bytes=2_000_000, source_until="2026-12-21T14:01:26Z")

    assert dead_letter_headers(too_large)[4:] == [
        ("dead-letter-value-omitted", b"2000000"),
        ("dead-letter-source-until", b"2026-12-21T14:01:26Z"),
    ]


@given(headers, letters)
def test_a_dead_letter_is_read_back_behind_the_records_own_headers(own: Headers, letter: DeadLetter) -> None:
    assert parse_dead_letter([*own, *dead_letter_headers(letter)]) == letter


@given(letters, letters)
def test_of_two_dead_letters_the_last_one_counts(first: DeadLetter, second: DeadLetter) -> None:
    assert parse_dead_letter([*dead_letter_headers(first), *dead_letter_headers(second)]) == second


@pytest.mark.parametrize("own", [None, [], [("deliver-at", b"1"), ("a", None)]])
def test_other_records_are_no_dead_letters(own: Headers | None) -> None:
    assert parse_dead_letter(own) is None


def test_a_reason_of_a_newer_relay_is_read_as_it_is() -> None:
    newer = LETTER._replace(reason="not-known-yet")

    assert parse_dead_letter(dead_letter_headers(newer)) == newer


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dead-letter-source", b"a:b", "b'a:b' is not a dead-letter-source: <topic>:<partition>:<offset>"),
        ("dead-letter-at", b"noon", "b'noon' is not a dead-letter-at: a whole number"),
        ("dead-letter-at", None, "b'' is not a dead-letter-at: a whole number"),
    ],
)
def test_a_dead_letter_that_no_relay_wrote_is_refused(name: str, value: bytes | None, message: str) -> None:
    forged = [*dead_letter_headers(LETTER), (name, value)]

    with pytest.raises(MalformedHeader) as refused:
        parse_dead_letter(forged)

    assert str(refused.value) == message
