from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from delaytopic_api.relay import RelayBackend
from delaytopic_api.values import BackendType
from delaytopic_relay.backlog.signing import (
    MAGIC,
    MARK_BYTES,
    UNSIGNED,
    SegmentSigner,
    bucket_place,
    mark_of,
    signer_of,
    slice_place,
)
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.errors import ConfigurationError, ForeignRecord

PLACE = slice_place(3, Slice(10_000, 1_000))
SEGMENT = b"\x01 whatever"
FIRST, SECOND = b"the first of the keys", b"the second of the keys"
SIGNER = SegmentSigner("delaytopic.team.shop", [FIRST])


def test_a_signed_segment_is_four_bytes_then_half_of_an_hmac_and_the_segment() -> None:
    key = hmac.digest(FIRST, b"delaytopic segments of delaytopic.team.shop", "sha256")
    tag = hmac.digest(key, b"slice:3:10000:1000;" + SEGMENT, "sha256")[:16]

    assert SIGNER.sign(PLACE, SEGMENT) == b"\xc1DTS" + tag + SEGMENT


def test_in_a_slice_the_mark_of_the_put_stands_between_tag_and_segment_and_is_signed_too() -> None:
    mark = mark_of(StoreVersion("relay-1", 7, 100))

    signed = SIGNER.sign(PLACE, SEGMENT, mark)

    assert signed == SIGNER.sign(PLACE, mark + SEGMENT)
    assert SIGNER.verify(PLACE, signed, MARK_BYTES) == SEGMENT


def test_the_same_segment_of_two_puts_has_two_tags_and_a_copy_has_the_same() -> None:
    puts = [StoreVersion("relay-1", 7, 100), StoreVersion("relay-1", 8, 100), StoreVersion("relay-2", 7, 100)]

    tags = [SIGNER.tag_of(SIGNER.sign(PLACE, SEGMENT, mark_of(put))) for put in [*puts, puts[0]]]

    assert (len({*tags}), tags[3]) == (3, tags[0])


def test_without_a_key_segments_stay_as_they_are_and_signed_ones_are_read_too() -> None:
    assert UNSIGNED.sign(PLACE, SEGMENT) == SEGMENT
    assert UNSIGNED.verify(PLACE, SEGMENT) == SEGMENT
    assert UNSIGNED.verify(PLACE, SIGNER.sign(PLACE, SEGMENT)) == SEGMENT


def test_the_first_key_signs_and_all_verify() -> None:
    rotated = SegmentSigner("delaytopic.team.shop", [SECOND, FIRST])
    new = SegmentSigner("delaytopic.team.shop", [SECOND])

    assert rotated.verify(PLACE, SIGNER.sign(PLACE, SEGMENT)) == SEGMENT
    assert rotated.sign(PLACE, SEGMENT) == new.sign(PLACE, SEGMENT)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "it is empty"),
        (b"", "it is empty"),
        (SEGMENT, "it is not signed"),
        (b"\x02" + SEGMENT, "it starts with byte 0x02, which no segment does"),
        (MAGIC + bytes(16), "it is too short for a segment"),
        (MAGIC + bytes(16) + SEGMENT, "no key of this backend has signed it, or not for this place"),
        (
            SIGNER.sign(bucket_place(3, 0), SEGMENT),
            "no key of this backend has signed it, or not for this place",
        ),
        (SIGNER.sign(PLACE, SEGMENT) + b"x", "no key of this backend has signed it, or not for this place"),
    ],
)
def test_what_is_not_signed_for_this_place_is_told_apart_with_the_reason(data: bytes | None, why: str) -> None:
    with pytest.raises(ForeignRecord) as caught:
        SIGNER.verify(PLACE, data)

    assert str(caught.value) == why


def test_a_mark_tells_which_key_signs_and_is_known_to_who_has_it() -> None:
    rotated = SegmentSigner("delaytopic.team.shop", [SECOND, FIRST])
    elsewhere = SegmentSigner("delaytopic.team.payments", [FIRST])

    assert [rotated.knows(f"relay-1{mark}+2") for mark in (SIGNER.key_id, rotated.key_id, elsewhere.key_id, "")] == [
        True,
        True,
        False,
        False,
    ]
    assert (UNSIGNED.key_id, UNSIGNED.knows("relay-1"), UNSIGNED.knows(f"relay-1{SIGNER.key_id}")) == ("", True, True)


# -- keys


OLD, NEW = b"an old key, long enough", b"a new key, long enough"


def backend(path: Path | None) -> RelayBackend:
    file = str(path) if path is not None else None
    return RelayBackend(type=BackendType.KAFKA_BUCKETS, id="delaytopic.team.shop", signing_keys_file=file)


def test_keys_stand_one_a_line_and_the_first_signs(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"%s\r\n\n  %s\n" % (NEW, OLD))

    signer = signer_of(backend(file))

    signed = SegmentSigner("delaytopic.team.shop", [OLD]).sign(b"place", b"\x01")
    assert (signer.verify(b"place", signed), signer.key_id) == (
        b"\x01",
        SegmentSigner("delaytopic.team.shop", [NEW]).key_id,
    )


def test_without_a_file_nothing_is_signed() -> None:
    assert signer_of(backend(None)).key_id == ""


@pytest.mark.parametrize("text", [b"", b"\n\n", b"too short", b"%s\nshort\n" % NEW])
def test_a_file_without_keys_or_with_one_that_can_be_guessed_is_refused_and_says_how_to_make_one(
    tmp_path: Path, text: bytes
) -> None:
    file = tmp_path / "keys"
    file.write_bytes(text)

    with pytest.raises(ConfigurationError, match="must hold one key a line, each of at least 16 bytes; `openssl rand"):
        signer_of(backend(file))


def test_a_file_that_is_not_there_is_named_with_the_field(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^backend.signingKeysFile: .*keys cannot be read"):
        signer_of(backend(tmp_path / "keys"))
