from __future__ import annotations

import json
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import ROOT

from delaytopic_api.relay import (
    LONGEST_SHOWN_BYTES,
    DueBin,
    PendingContent,
    PendingHeader,
    PendingList,
    PendingRecord,
    PendingShard,
    text_or_base64,
)

REFERENCE = ROOT / "docs" / "reference" / "pending.md"
LIST = PendingList(
    relay="relay-0",
    delay_topic="shop/reminders",
    source="shop.reminders.delayed",
    source_partitions=2,
    as_of_ms=1,
    pending=7,
    overdue=0,
    next_due_ms=5,
    ingest_lag=8,
    due_histogram=[DueBin(up_to_ms=1_001, records=7)],
    limit=1,
    complete=False,
    limited=True,
    message="there are more than the limit of 1",
    shards=[
        PendingShard(partition=0, listed=True, pending=7, ingested=9),
        PendingShard(partition=1, listed=False, message="no"),
    ],
    records=[PendingRecord(due_ms=5, partition=0, offset=3, target="t", id="i", key="k", key_bytes=1, value_bytes=2)],
)
ON_THE_WIRE = {
    "relay": "relay-0",
    "delayTopic": "shop/reminders",
    "source": "shop.reminders.delayed",
    "sourcePartitions": 2,
    "asOfMs": 1,
    "pending": 7,
    "overdue": 0,
    "nextDueMs": 5,
    "ingestLag": 8,
    "dueHistogram": [{"upToMs": 1_001, "records": 7}],
    "dueBeforeMs": None,
    "limit": 1,
    "complete": False,
    "limited": True,
    "listedUntilMs": None,
    "message": "there are more than the limit of 1",
    "shards": [
        {"partition": 0, "listed": True, "pending": 7, "ingested": 9, "message": None},
        {"partition": 1, "listed": False, "pending": None, "ingested": None, "message": "no"},
    ],
    "records": [
        {
            "dueMs": 5,
            "partition": 0,
            "offset": 3,
            "target": "t",
            "id": "i",
            "idBase64": None,
            "key": "k",
            "keyBase64": None,
            "keyBytes": 1,
            "valueBytes": 2,
            "expiresMs": None,
            "content": None,
        }
    ],
}


def test_every_field_is_in_the_reference() -> None:
    text = REFERENCE.read_text()
    models = (PendingList, PendingRecord, PendingContent, PendingHeader, PendingShard)

    fields = {field.alias for model in models for field in model.model_fields.values()}

    assert [name for name in sorted(map(str, fields)) if f"`{name}`" not in text] == []


def test_the_answer_of_a_relay_has_every_field_with_null_for_what_there_is_not() -> None:
    assert json.loads(LIST.to_json()) == ON_THE_WIRE


def test_a_list_survives_the_way_over_the_wire() -> None:
    assert PendingList.model_validate_json(LIST.to_json()) == LIST


def test_what_a_newer_relay_adds_is_ignored() -> None:
    assert PendingList.model_validate(ON_THE_WIRE | {"fromTheFuture": 1}) == LIST


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (None, (None, None)),
        (b"", ("", None)),
        ("größe".encode(), ("größe", None)),
        (b"\xff", (None, "/w==")),
        ("größe".encode()[:3], (None, "Z3LD")),
        (b"x" * 2_000, ("x" * LONGEST_SHOWN_BYTES, None)),
        ("ö".encode() * 2_000, ("ö" * (LONGEST_SHOWN_BYTES // 2), None)),
        (b"x" + "ö".encode() * 2_000, ("x" + "ö" * (LONGEST_SHOWN_BYTES // 2 - 1), None)),
    ],
)
def test_a_key_is_text_where_it_is_utf_8_and_else_base64_and_never_long(
    content: bytes | None, shown: tuple[str | None, str | None]
) -> None:
    assert text_or_base64(content) == shown


@given(st.binary(max_size=1_100))
def test_a_content_is_shown_whole(content: bytes) -> None:
    text, base64 = text_or_base64(content, None)

    assert (text.encode() if text is not None else b64decode(base64 or "")) == content


@given(st.binary(max_size=1_100))
def test_whatever_a_key_is_its_beginning_can_be_told_from_what_is_shown(content: bytes) -> None:
    text, base64 = text_or_base64(content)

    beginning = text.encode() if text is not None else b64decode(base64 or "")
    assert content.startswith(beginning)
    assert len(beginning) >= min(len(content), LONGEST_SHOWN_BYTES - 3)
