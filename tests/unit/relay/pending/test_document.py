from __future__ import annotations

from typing import Any

import pytest
from tests.support.relay.statuses import AS_OF_MS, relay_status, shard

from delaytopic_api.relay import (
    LARGEST_ANSWER_BYTES,
    DueBin,
    PendingContent,
    PendingHeader,
    PendingList,
    PendingRecord,
    PendingShard,
    ShardState,
)
from delaytopic_relay.core.commands import Schedule
from delaytopic_relay.pending.document import ELSEWHERE, RECORD_BYTES, REPLAYING, Subject, pending_list
from delaytopic_relay.pending.query import PendingQuery
from delaytopic_relay.pending.search import Listed, PendingResult
from delaytopic_relay.pending.snapshot import Copies, ShardCopy

SUBJECT = Subject("shop.delayed", 3, "shop.reminders")
BINS = [DueBin(up_to_ms=AS_OF_MS + 1_000, records=4)]
STATUS = relay_status(
    next_due_ms=AS_OF_MS + 5,
    due_histogram=BINS,
    shards=[shard(0, ShardState.DELIVERING).model_copy(update={"pending": 4}), shard(1, ShardState.RECOVERING)],
)
ONE = Listed(AS_OF_MS + 5, 0, 3, None, None, b"k", None)
OTHER = Listed(AS_OF_MS + 7, 0, 1, b"\xff", "shop.other", None, 12)


def document(*records: Listed, query: PendingQuery = PendingQuery(), **changes: Any) -> PendingList:  # noqa: B008
    copies = Copies({0: ShardCopy(0, [], **{"ingested": 7, **changes.pop("copy", {})})}, changes.pop("waiting", {}))
    return pending_list(STATUS, SUBJECT, query, copies, PendingResult(records, **changes))


def test_counts_come_from_the_status_and_records_from_the_listing() -> None:
    assert document(ONE, OTHER, query=PendingQuery(AS_OF_MS + 9, 5)) == PendingList(
        relay="relay-0",
        delay_topic="shop/reminders",
        source="shop.delayed",
        source_partitions=3,
        as_of_ms=AS_OF_MS,
        pending=12,
        overdue=2,
        next_due_ms=AS_OF_MS + 5,
        ingest_lag=5,
        due_histogram=BINS,
        due_before_ms=AS_OF_MS + 9,
        limit=5,
        complete=True,
        shards=[
            PendingShard(partition=0, listed=True, pending=4, ingested=7),
            PendingShard(partition=1, listed=False, pending=0, message=ELSEWHERE),
            PendingShard(partition=2, listed=False, message=ELSEWHERE),
        ],
        records=[
            PendingRecord(due_ms=AS_OF_MS + 5, partition=0, offset=3, target="shop.reminders", key="k", key_bytes=1),
            PendingRecord(
                due_ms=AS_OF_MS + 7, partition=0, offset=1, target="shop.other", id_base64="/w==", value_bytes=12
            ),
        ],
    )


def test_one_record_more_than_the_limit_tells_that_there_are_more() -> None:
    found = document(ONE, OTHER, query=PendingQuery(limit=1), cut_ms=AS_OF_MS + 60_000, why="too many")

    assert (found.complete, found.limited, found.listed_until_ms) == (False, True, None)
    assert found.message == "there are more than the limit of 1"
    assert [record.offset for record in found.records] == [3]


def with_contents(value: bytes | None) -> Listed:
    schedule = Schedule(AS_OF_MS, 3, b"\xff", value, [("h", None), ("h", b"\xfe"), ("t", b"x")])
    return Listed.of(0, schedule, contents=True)


def test_contents_are_text_or_base64() -> None:
    (record,) = document(with_contents("ä".encode()), query=PendingQuery(contents=True)).records

    assert record.content == PendingContent(
        key_base64="/w==",
        value="ä",
        headers=[
            PendingHeader(name="h"),
            PendingHeader(name="h", value_base64="/g=="),
            PendingHeader(name="t", value="x"),
        ],
    )


def test_contents_end_a_list_before_it_gets_too_long() -> None:
    large = with_contents(bytes(LARGEST_ANSWER_BYTES // 2))

    found = document(large, large._replace(offset=4), query=PendingQuery(contents=True))

    assert ([record.offset for record in found.records], found.complete, found.limited) == ([3], False, True)
    assert found.message == "there are more than the 4 MiB of an answer"


@pytest.mark.parametrize(("most_bytes", "shown"), [(1, 1), (2 * (RECORD_BYTES + 4 + 5), 2), (1_526, 2), (1_527, 3)])
def test_a_reader_may_have_less_room_than_an_answer(most_bytes: int, shown: int) -> None:
    records = [Listed(AS_OF_MS, 0, number, b"a-id", None, b"a-key", 9) for number in range(3)]

    found = document(*records, query=PendingQuery(most_bytes=most_bytes))

    assert (len(found.records), found.limited) == (shown, shown < 3)
    assert found.message == (f"there are more than the {most_bytes} bytes of an answer" if shown < 3 else None)


def test_of_a_long_key_counts_what_is_shown() -> None:
    records = [Listed(AS_OF_MS, 0, number, None, None, bytes(1 << 20), 9) for number in range(2)]

    assert len(document(*records, query=PendingQuery(most_bytes=2 * (RECORD_BYTES + 1_024))).records) == 2


def test_a_record_that_is_too_long_by_itself_is_shown_by_itself() -> None:
    large = with_contents(bytes(LARGEST_ANSWER_BYTES + 1))

    found = document(large, query=PendingQuery(contents=True))

    assert (len(found.records), found.complete) == (1, True)


def test_a_list_that_had_to_end_says_where_and_why() -> None:
    found = document(ONE, cut_ms=AS_OF_MS + 60_000, why="the backlog cannot be read: no answer")

    assert (found.complete, found.limited, found.listed_until_ms) == (False, False, AS_OF_MS + 60_000)
    assert found.message == "the backlog cannot be read: no answer"


def test_a_shard_that_is_being_recovered_is_not_listed_and_the_list_not_complete() -> None:
    found = document(ONE, waiting={1: "assigned"})

    assert (found.complete, found.message) == (False, "being recovered (assigned); ask again")
    assert [shard.listed for shard in found.shards] == [True, False, False]


def test_a_shard_that_reads_again_is_listed_and_the_list_not_complete() -> None:
    found = document(ONE, copy={"replaying": True})

    assert (found.complete, found.message) == (False, REPLAYING)


def test_one_partition_is_counted_by_itself() -> None:
    found = document(ONE, query=PendingQuery(partition=0))

    assert (found.pending, found.overdue, found.complete) == (4, 0, True)
    assert found.shards == [PendingShard(partition=0, listed=True, pending=4, ingested=7)]


def test_a_partition_of_another_relay_is_said_to_be_there() -> None:
    found = document(query=PendingQuery(partition=2))

    assert (found.pending, found.complete, found.message) == (0, False, ELSEWHERE)
    assert found.shards == [PendingShard(partition=2, listed=False, message=ELSEWHERE)]
