"""The backup of offsets as text: it comes back as it was, fits into a ConfigMap, and damage is told."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.scenes import NOW_MS, record

from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.model.offsets_backup import (
    OffsetsBackup,
    backup_text,
    forgotten,
    is_too_large,
    parse_backup,
    updated,
)
from delaytopic_operator.model.record import OFFSETS_KEY, parse_record, record_document

MOST_PARTITIONS = 10_000
CONFIG_MAP_BYTES = 1_048_576

partitions = st.dictionaries(st.integers(0, 9_999), st.builds(Committed, st.integers(0), st.text(max_size=40)))
kept_ones = st.builds(OffsetsBackup, topic=st.text(), topic_id=st.text(), partitions=partitions)


def one(topic_id: str = "a-1", **offsets: int) -> OffsetsBackup:
    """Of a few partitions: `p0=7` for the first."""
    found = {int(name[1:]): Committed(offset, f"1;{offset};0;0;") for name, offset in offsets.items()}
    return OffsetsBackup("shop.a", topic_id, found)


@given(kept_ones)
def test_a_backup_comes_back_as_it_was(kept: OffsetsBackup) -> None:
    assert parse_backup(backup_text(kept)) == kept


@given(kept_ones)
def test_a_record_comes_back_with_its_offsets(kept: OffsetsBackup) -> None:
    written = record().model_copy(update={"offsets": kept})

    assert parse_record(record_document(written, "delaytopic-system")) == written


def test_ten_thousand_partitions_fit_into_a_config_map_half_over() -> None:
    numbers = random.Random(7)
    relays = [f"delaytopic.shop.reminders-relay-1a2b3c4d-{numbers.getrandbits(40):010x}-{it:05d}" for it in range(100)]
    partitions = {
        number: Committed(
            numbers.randrange(10**12),
            f"1;{numbers.randrange(10**12)};{numbers.randrange(10**13)};{numbers.randrange(10**12)};"
            f"{numbers.choice(relays)}",
        )
        for number in range(MOST_PARTITIONS)
    }
    written = record().model_copy(update={"offsets": OffsetsBackup("shop.a", "a-1", partitions)})

    document = record_document(written, "delaytopic-system")

    assert len(json.dumps(document)) < CONFIG_MAP_BYTES / 2
    assert parse_record(document) == written


def with_long_texts(partitions: int) -> OffsetsBackup:
    """As relays with many bucket topics leave them: numbers that hardly compress."""
    numbers = random.Random(7)
    texts = (":".join(str(numbers.randrange(10**13)) for _ in range(100)) for _ in range(partitions))
    return OffsetsBackup("shop.a", "a-1", {number: Committed(number, text) for number, text in enumerate(texts)})


def test_what_does_not_fit_is_known_beforehand() -> None:
    assert [is_too_large(with_long_texts(partitions)) for partitions in (500, 2_000)] == [False, True]


def test_a_record_without_offsets_has_no_text_for_it() -> None:
    assert OFFSETS_KEY not in record_document(record(), "delaytopic-system")["data"]


@pytest.mark.parametrize("text", ["", "no base64!", "bm8gemxpYg==", "eJxTAAAAIQAh"])
def test_a_damaged_backup_is_refused_with_the_record(text: str) -> None:
    document = record_document(record(), "delaytopic-system")
    damaged = {**document, "data": {**document["data"], OFFSETS_KEY: text}}

    with pytest.raises(RecordUnreadable, match=r"holds offsets of relays that cannot be read \(progress.zlib.base64"):
        parse_record(damaged)


@pytest.mark.parametrize(
    ("what", "kept", "read", "expected"),
    [
        ("the first time", None, one(p0=3), one(p0=3)),
        ("further on", one(p0=3, p1=4), one(p0=9, p1=4), one(p0=9, p1=4)),
        ("set back by hand", one(p0=3), one(p0=1), one(p0=1)),
        ("partly forgotten", one(p0=3, p1=4), one(p1=8), one(p0=3, p1=8)),
        ("all forgotten", one(p0=3), one(), one(p0=3)),
        ("not known", one(p0=3), None, one(p0=3)),
        ("of a topic made anew", one(p0=3, p1=4), one("a-2", p0=1), one("a-2", p0=1)),
        ("nothing ever", None, one(), None),
    ],
)
def test_what_kafka_has_counts_and_what_it_forgot_stays(
    what: str, kept: OffsetsBackup | None, read: OffsetsBackup | None, expected: OffsetsBackup | None
) -> None:
    found = updated(kept, read, NOW_MS)

    assert (found and replace(found, read_ms={})) == expected, what


def test_a_backup_tells_up_to_when_it_knows_what_was_delivered() -> None:
    first = updated(None, one(p0=3, p1=4), 1_000)
    same = updated(first, one(p0=3, p1=4), 2_000)
    moved = updated(same, one(p0=3, p1=5), 3_000)
    partly = updated(moved, one(p1=6), 4_000)
    found = [each.as_of_ms([0, 1]) for each in (first, same, moved, partly) if each is not None]

    assert found == [1_000, 1_000, 3_000, 3_000]
    assert partly is not None
    assert (partly.as_of_ms([1]), one(p0=3).as_of_ms([0])) == (4_000, 0)
    assert parse_backup(backup_text(partly)) == partly


@pytest.mark.parametrize(
    ("kept", "read", "expected"),
    [
        (one(p0=3), one(), True),
        (one(p0=3, p1=4), one(p1=4), True),
        (one(p0=3), one(p0=1, p1=2), False),
        (one(p0=3), one("a-2"), False),
        (one(p0=3), None, False),
        (None, one(p0=3), False),
    ],
)
def test_it_is_forgotten_when_a_partition_of_the_same_topic_is(
    kept: OffsetsBackup | None, read: OffsetsBackup | None, expected: bool
) -> None:
    assert forgotten(kept, read) is expected
