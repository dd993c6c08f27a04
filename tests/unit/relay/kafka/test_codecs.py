"""Tests of the codec that a relay's producer begins with."""

from __future__ import annotations

import pytest

from delaytopic_api.values import Compression
from delaytopic_relay.kafka.settings import CODECS, NO_CODEC, codec_of, producer_settings


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_auto_takes_the_codec_that_the_source_names(codec: str) -> None:
    assert codec_of(Compression.AUTO, {"compression.type": codec}) == codec


@pytest.mark.parametrize("settings", [{"compression.type": "producer"}, {"compression.type": "uncompressed"}, {}])
def test_auto_compresses_nothing_where_the_source_names_no_codec(settings: dict[str, str]) -> None:
    assert codec_of(Compression.AUTO, settings) == NO_CODEC


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.AUTO])
def test_a_codec_that_is_written_counts_whatever_the_source_names(compression: Compression) -> None:
    codec = codec_of(compression, {"compression.type": "gzip"})

    assert codec == str(compression).lower()
    assert codec in {*CODECS, NO_CODEC}


def test_a_producer_compresses_nothing_unless_it_is_told_to() -> None:
    assert producer_settings({}, "relay", None, 1 << 20)["compression.type"] == NO_CODEC
    assert producer_settings({}, "relay", None, 1 << 20, "zstd")["compression.type"] == "zstd"
