"""Whoever may write to the backend writes any bytes: foreign ones are named, and with a key only its own are read."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from tests.support.fuzzing import fuzz, nightly_for, peak_memory_bytes

from delaytopic_relay.backlog.kafka.segments import (
    Part,
    decode_id,
    encode_bucket_segment,
    encode_id,
    segment_head,
    segment_schedules,
)
from delaytopic_relay.backlog.redis.layout import (
    decode_count,
    decode_id_entry,
    decode_slice,
    decode_version,
    encode_id_entry,
    encode_version,
)
from delaytopic_relay.backlog.segments import VERSION, decode_slice_segment, encode_segment
from delaytopic_relay.backlog.signing import UNSIGNED, SegmentSigner, bucket_place, slice_place
from delaytopic_relay.backlog.store import Slice, StoreVersion
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.core.id_states import IdEntry, from_entry
from delaytopic_relay.errors import CorruptState

KEY = SegmentSigner("shop", [b"a key of the platform's"])
SLICE = Slice(0, 1_000)
PLACES = (slice_place(3, SLICE), bucket_place(3, 1))

int64 = st.integers(0, 2**63 - 1)
optional_bytes = st.none() | st.binary(max_size=20)
schedules = st.lists(
    st.builds(
        Schedule,
        int64,
        int64,
        optional_bytes,
        optional_bytes,
        st.none() | st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=3),
        st.integers(-2, 3),
        optional_bytes,
        st.none() | st.text(max_size=5),
    ),
    max_size=4,
)
segments = st.one_of(
    schedules.map(encode_segment),
    st.builds(
        lambda mark, number, floor_ms, found: encode_bucket_segment(
            mark, number, floor_ms, Part(found, encode_segment(found)[len(VERSION) :])
        ),
        int64,
        int64,
        int64,
        schedules,
    ),
)
signers = st.sampled_from(
    [UNSIGNED, KEY, SegmentSigner("payments", [b"a key of the platform's"]), SegmentSigner("shop", [b"another key"])]
)
signed = st.builds(lambda signer, place, data: signer.sign(place, data), signers, st.sampled_from(PLACES), segments)


@st.composite
def mutated(draw: st.DrawFn, of: st.SearchStrategy[bytes]) -> bytes:
    """Draw bytes of which a piece was replaced."""
    data = draw(of)
    first = draw(st.integers(0, len(data)))
    last = draw(st.integers(first, len(data)))
    return data[:first] + draw(st.binary(max_size=30)) + data[last:]


own = st.builds(
    lambda place, data, with_key: ((KEY if with_key else UNSIGNED).sign(place, data), place, with_key),
    st.sampled_from(PLACES),
    segments,
    st.booleans(),
)
values = st.tuples(signed | mutated(signed) | st.binary(max_size=100), st.sampled_from(PLACES), st.booleans()) | own


@nightly_for(150)
def test_every_segment_is_read_or_named_as_foreign(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"read": 0, "read with a key": 0, "foreign": 0, "bytes": 0}

    def read(found: tuple[bytes, bytes, bool]) -> None:
        data, place, with_key = found
        counts["bytes"] += len(data)
        signer = KEY if with_key else UNSIGNED
        try:
            segment = signer.verify(place, data)
            assert not with_key or data == KEY.sign(place, segment)
            if place == PLACES[0]:
                decode_slice_segment(segment, SLICE)
            else:
                segment_head(segment)
                segment_schedules(segment)
        except CorruptState:
            counts["foreign"] += 1
        else:
            counts["read with a key" if with_key else "read"] += 1

    tried = fuzz(values, read, seconds)

    record_property("hostile", {"segments": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0


numbers = st.integers() | int64 | st.sampled_from([2**63, 10**400])
entries = st.builds(IdEntry, numbers, numbers, numbers)
texts = st.one_of(
    entries.map(encode_id_entry),
    st.builds(encode_id, numbers, entries),
    st.builds(StoreVersion, st.text(max_size=10), numbers, numbers).map(encode_version),
    st.builds(lambda *slice_: b"%d:%d" % slice_, numbers, numbers),
    numbers.map(lambda number: b"%d" % number),
    st.sampled_from([b"", b"9" * 5_000, b"1:2:\xff"]),
)


@nightly_for(150)
def test_every_value_beside_segments_is_read_or_named_as_foreign(
    seconds: int, record_property: Callable[[str, object], None]
) -> None:
    counts = {"read": 0, "foreign": 0, "bytes": 0}

    def read(value: bytes) -> None:
        counts["bytes"] += len(value)
        for decode in (
            lambda: decode_version(value, b"{shop:3}:position"),
            lambda: decode_slice(value, b"{shop:3}:slices"),
            lambda: decode_count(value, b"{shop:3}:counts"),
            lambda: from_entry(decode_id_entry(value, b"{shop:3}:ids") or IdEntry(0, 0, 0)).to_entry(),
            lambda: from_entry(decode_id(value)[1]).to_entry(),
        ):
            try:
                decode()
                counts["read"] += 1
            except CorruptState:
                counts["foreign"] += 1

    tried = fuzz(texts | mutated(texts) | st.binary(max_size=60), read, seconds)

    record_property("hostile", {"values": tried, **counts, "peak_memory_bytes": peak_memory_bytes()})
    assert min(counts.values()) > 0
