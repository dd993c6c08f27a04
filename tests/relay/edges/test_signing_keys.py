from __future__ import annotations

from pathlib import Path

import pytest

from delaytopic_api.relay import RelayBackend
from delaytopic_api.values import BackendType
from delaytopic_relay.backlog.signing import SegmentSigner, signer_of
from delaytopic_relay.errors import ConfigurationError

OLD, NEW = b"an old key, long enough", b"a new key, long enough"


def backend(path: Path | None) -> RelayBackend:
    file = str(path) if path is not None else None
    return RelayBackend(type=BackendType.KAFKA_BUCKETS, id="delaytopic.team.shop", signing_keys_file=file)


def test_keys_stand_one_a_line_and_the_first_signs(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_bytes(b"%s\r\n\n  %s\n" % (NEW, OLD))

    signer = signer_of(backend(file))

    signed = SegmentSigner("delaytopic.team.shop", [OLD]).sign(b"place", b"\x01")
    assert (signer.verify(b"place", signed), signer.mark) == (
        b"\x01",
        SegmentSigner("delaytopic.team.shop", [NEW]).mark,
    )


def test_without_a_file_nothing_is_signed() -> None:
    assert signer_of(backend(None)).mark == ""


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
