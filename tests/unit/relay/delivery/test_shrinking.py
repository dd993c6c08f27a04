"""Tests of the guess at what compression makes of a value."""

from __future__ import annotations

import random
from base64 import b64encode
from zlib import compress

import pytest

from delaytopic_relay.delivery.shrinking import PIECE_BYTES, PIECES, may_shrink_to, shrunk_bytes

LIMIT = 1_000_000
NOISE = random.Random(1).randbytes(1_200_000)
DIGITS = random.Random(2).randbytes(3_500_000).translate(b"0123456789" * 25 + b"012345")


@pytest.mark.parametrize(
    "value", [b"", b"x", b'{"state": "open"}' * 200_000, DIGITS], ids=["no", "x", "text", "digits"]
)
def test_what_zlib_halves_may_fit_whatever_is_left_of_it(value: bytes) -> None:
    assert may_shrink_to(value, LIMIT)


@pytest.mark.parametrize("value", [NOISE, b64encode(NOISE), NOISE * 10], ids=["noise", "base64", "much noise"])
def test_what_zlib_neither_halves_nor_makes_fit_does_not_fit(value: bytes) -> None:
    assert not may_shrink_to(value, LIMIT)


def test_what_zlib_does_not_halve_fits_if_that_is_enough() -> None:
    value = NOISE[:700_000] + bytes(500_000)

    assert may_shrink_to(value, LIMIT)
    assert not may_shrink_to(value, LIMIT // 2)


def test_a_value_is_judged_by_pieces_of_the_whole_of_it() -> None:
    # Given one that begins as if it did not shrink
    beginning = NOISE[: PIECES * PIECE_BYTES]

    assert may_shrink_to(beginning + bytes(20 * len(beginning)), LIMIT)


def test_the_size_of_a_small_value_is_that_which_zlib_makes() -> None:
    text = b'{"state": "open"}' * 1_000

    assert shrunk_bytes(text) == len(compress(text, level=1))
