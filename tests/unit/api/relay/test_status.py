from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from delaytopic_api import RelayStatus
from delaytopic_api.relay import Cursor, DueBin, RelayState, ShardState, ShardStatus, UnansweredTopic
from delaytopic_api.values import BackendType, Guarantee

STATUS = RelayStatus(
    relay="relay-0",
    delay_topic="shop/order-reminders",
    started_at_ms=1,
    as_of_ms=2,
    state=RelayState.RUNNING,
    guarantee=Guarantee.EXACTLY_ONCE,
    backend=BackendType.REDIS_ZSET,
    speedups=True,
    delivered_total=3,
    dead_lettered_total=4,
    superseded_total=5,
    cancelled_total=6,
    pending=7,
    overdue=0,
    ingest_lag=8,
    memory_bytes=9,
    due_histogram=[DueBin(up_to_ms=1_002, records=7)],
    shards=[
        ShardStatus(
            partition=0,
            state=ShardState.DELIVERING,
            committed_offset=10,
            position=11,
            cursor=Cursor(due_ms=1, offset=9),
            pending=7,
            overdue=0,
            next_due_ms=500,
            ingest_lag=8,
        )
    ],
    unanswered=[UnansweredTopic(topic="shop.orders", since_ms=900, message="it has no leader")],
)
ON_THE_WIRE = {
    "relay": "relay-0",
    "delayTopic": "shop/order-reminders",
    "startedAtMs": 1,
    "asOfMs": 2,
    "state": "Running",
    "guarantee": "ExactlyOnce",
    "backend": "RedisZset",
    "speedups": True,
    "deliveredTotal": 3,
    "deadLetteredTotal": 4,
    "supersededTotal": 5,
    "cancelledTotal": 6,
    "misspeltTotal": 0,
    "misspeltHeader": None,
    "secondClock": None,
    "ancientTotal": 0,
    "busyRate": None,
    "pending": 7,
    "withdrawn": 0,
    "overdue": 0,
    "oldestOverdueMs": None,
    "nextDueMs": None,
    "ingestLag": 8,
    "replayLag": 0,
    "memoryBytes": 9,
    "dueHistogram": [{"upToMs": 1_002, "records": 7}],
    "shards": [
        {
            "partition": 0,
            "state": "Delivering",
            "committedOffset": 10,
            "position": 11,
            "cursor": {"dueMs": 1, "offset": 9},
            "pending": 7,
            "withdrawn": 0,
            "overdue": 0,
            "nextDueMs": 500,
            "ingestLag": 8,
            "replayLag": 0,
            "dueHistogram": [],
            "redisBytes": None,
            "redisFull": False,
            "buckets": [],
            "formerRules": [],
            "rulesWait": None,
            "reason": None,
            "openTransaction": None,
            "missingOffsets": 0,
            "message": None,
        }
    ],
    "unanswered": [
        {"topic": "shop.orders", "partition": None, "sinceMs": 900, "waiting": 0, "message": "it has no leader"}
    ],
}


def test_the_answer_of_a_relay_has_every_field_with_null_for_what_is_not_known() -> None:
    assert json.loads(STATUS.to_json()) == ON_THE_WIRE


def test_a_status_survives_the_way_over_the_wire() -> None:
    assert RelayStatus.model_validate_json(STATUS.to_json()) == STATUS


def test_what_a_newer_relay_adds_is_ignored() -> None:
    assert RelayStatus.model_validate(ON_THE_WIRE | {"fromTheFuture": 1}) == STATUS


@pytest.mark.parametrize(
    ("number", "read"),
    [("1" + "0" * 400, 2**63 - 1), ("9223372036854775808", 2**63 - 1), ("-9223372036854775809", -(2**63)), ("7", 7)],
)
def test_a_number_with_which_no_reader_can_calculate_is_read_as_the_nearest_that_it_can(number: str, read: int) -> None:
    page = json.loads(STATUS.to_json())
    text = json.dumps(page | {"pending": "NUMBER"}).replace('"NUMBER"', number)

    assert RelayStatus.model_validate_json(text).pending == read


@pytest.mark.parametrize("rate", ["NaN", "Infinity", "-1.0", "1e300"])
def test_a_rate_with_which_no_reader_can_calculate_is_refused(rate: str) -> None:
    page = json.loads(STATUS.to_json())
    text = json.dumps(page | {"busyRate": "RATE"}).replace('"RATE"', rate)

    with pytest.raises(ValidationError, match="busyRate"):
        RelayStatus.model_validate_json(text)


@pytest.mark.parametrize(
    ("instant", "read"),
    [
        (-30_610_224_000_001, -30_610_224_000_000),
        (253_402_300_800_000, 253_402_300_799_999),
        (1_795_269_600_000, 1_795_269_600_000),
    ],
)
def test_a_time_that_cannot_be_written_with_four_digits_of_a_year_is_the_nearest_that_can(
    instant: int, read: int
) -> None:
    page = json.loads(STATUS.to_json())

    assert RelayStatus.model_validate_json(json.dumps(page | {"nextDueMs": instant})).next_due_ms == read
