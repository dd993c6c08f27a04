"""Plain schedules leave in batches: where they may, in their order, and each as the record that it is alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api.records import DeadLetterReason, Headers, ReceiptForm, receipt_parts
from delaytopic_api.values import Partitioning
from delaytopic_relay.core.commands import ANY_PARTITION, NO_CONTROL_HEADER, SEVERAL_CONTROL_HEADERS, Record, Schedule
from delaytopic_relay.core.entries import size
from delaytopic_relay.delivery.batches import Batch, one_by_one
from delaytopic_relay.delivery.further_targets import FurtherTargets
from delaytopic_relay.delivery.record_writer import RecordWriter
from delaytopic_relay.delivery.refusals import Refusals, Refused

SHARD, SENT_MS = 3, 1_795_269_686_271
DUE_MS = 1_795_269_686_270
AT = ("deliver-at", b"1795269686270")
LIMITS = {"target": 1_000, "other": 500, "dead": 1_000}
CERTAIN_BYTES = 900


def a_writer(partitioning: Partitioning = Partitioning.BY_KEY, *, packs: bool = True) -> RecordWriter:
    """Of a DelayTopic whose target may take batches."""
    further = FurtherTargets(["other"], "delaytopic.team.shop")
    made = RecordWriter("shop.delayed", "target", partitioning, 4, LIMITS.get, further, Refusals())
    made.packs, made.certain_bytes = packs, CERTAIN_BYTES
    return made


def alone(offset: int, headers: Headers | None = None, control: int = NO_CONTROL_HEADER, **more: object) -> Schedule:
    return Schedule(DUE_MS, offset, b"key", b"value", headers, control, **more)  # type: ignore[arg-type]


def plain(offset: int, value: bytes | None = b"value") -> Schedule:
    return Schedule(DUE_MS, offset, b"key", value, [AT], 0)


def shapes(leaving: Sequence[Record | Batch]) -> list[int | list[int]]:
    """The source offsets of records, in lists where they are in batches."""
    return [
        [schedule.offset for schedule in each.schedules]
        if isinstance(each, Batch)
        else int((each.headers[-1][1] or b"").split(b":")[2])
        for each in leaving
    ]


def packed(writer: RecordWriter, *schedules: Schedule) -> list[int | list[int]]:
    """The shapes of what leaves, of which nothing may be withheld."""
    leaving, rejects = writer.packed(SHARD, schedules, SENT_MS)
    assert rejects == []
    return shapes(leaving)


# -- batches


def test_plain_schedules_leave_in_one_batch() -> None:
    schedules = [plain(offset) for offset in range(3)]

    leaving, rejects = a_writer().packed(SHARD, schedules, SENT_MS)

    parts = (b":3:", b":1795269686271:shop.delayed")
    assert leaving == [Batch("target", ANY_PARTITION, schedules, parts)]
    assert rejects == []


def test_a_batch_goes_to_the_partition_of_the_source_where_that_is_asked_for() -> None:
    [batch], _ = a_writer(Partitioning.SAME_PARTITION).packed(SHARD, [plain(1)], SENT_MS)

    assert batch.partition == SHARD


def test_other_schedules_keep_their_places_between_plain_ones() -> None:
    others = [alone(4, expires_ms=SENT_MS), alone(5, target="other")]
    schedules = [alone(1, [AT, AT], SEVERAL_CONTROL_HEADERS), plain(2), plain(3), *others, plain(6)]

    assert packed(a_writer(), *schedules) == [1, [2, 3], 4, 5, [6]]


def test_nothing_leaves_as_nothing() -> None:
    assert a_writer().packed(SHARD, [], SENT_MS) == ([], [])


def test_what_is_withheld_between_plain_schedules_leaves_the_others_where_they_are() -> None:
    schedules = [plain(1), alone(2, target="nowhere"), plain(3), alone(4, expires_ms=5), alone(5, expires_ms=SENT_MS)]

    leaving, rejects = a_writer().packed(SHARD, schedules, SENT_MS)

    assert shapes(leaving) == [[1], [3], 5]
    assert [(reject.offset, reject.reason) for reject in rejects] == [
        (2, DeadLetterReason.FORBIDDEN_TARGET),
        (4, DeadLetterReason.EXPIRED),
    ]


# -- one by one


def test_a_target_that_takes_no_batches_is_given_none() -> None:
    assert packed(a_writer(packs=False), plain(1), plain(2)) == [1, 2]


def test_in_turn_each_record_goes_alone_to_a_partition_of_its_own() -> None:
    leaving, _ = a_writer(Partitioning.ROUND_ROBIN).packed(SHARD, [plain(n) for n in range(4)], SENT_MS)

    assert shapes(leaving) == [0, 1, 2, 3]
    assert sorted(each.partition for each in leaving) == [0, 1, 2, 3]


def test_after_a_refusal_each_record_goes_alone_and_the_refused_one_is_withheld() -> None:
    refusing = a_writer()
    refusing.refusals.refused[SHARD, 2] = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record")

    leaving, rejects = refusing.packed(SHARD, [plain(1), plain(2), plain(3)], SENT_MS)

    assert shapes(leaving) == [1, 3]
    assert [(reject.offset, reject.detail) for reject in rejects] == [(2, "invalid record")]


def test_batches_leave_again_once_what_was_refused_is_settled() -> None:
    refusing = a_writer()
    refusing.refusals.refused[SHARD, 2] = Refused(DeadLetterReason.REFUSED_BY_KAFKA, "invalid record")
    refusing.packed(SHARD, [plain(2)], SENT_MS)

    refusing.refusals.settled(committed=True)

    assert packed(refusing, plain(1), plain(3)) == [[1, 3]]


def test_a_schedule_of_the_certain_size_leaves_in_a_batch_and_one_byte_more_goes_alone() -> None:
    most = 300 + CERTAIN_BYTES - size(plain(2, b"x" * 300))

    schedules = [plain(1), plain(2, b"x" * most), plain(3, b"x" * (most + 1)), plain(4)]

    assert packed(a_writer(), *schedules) == [[1, 2], 3, [4]]


def test_a_plain_record_that_is_too_large_for_its_topic_is_withheld() -> None:
    leaving, rejects = a_writer().packed(SHARD, [plain(1), plain(2, b"x" * 2_000), plain(3)], SENT_MS)

    assert shapes(leaving) == [[1], [3]]
    assert [(reject.offset, reject.reason) for reject in rejects] == [(2, DeadLetterReason.TOO_LARGE)]


# -- records of batches

NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=12)
CONTENT = st.none() | st.binary(max_size=12)


@st.composite
def plain_schedules(draw: st.DrawFn) -> Schedule:
    headers = draw(st.none() | st.lists(st.tuples(NAMES, CONTENT), max_size=6))
    control = draw(st.integers(-1, len(headers or ()) - 1))
    numbers = st.integers(0, 2**63 - 1)
    timestamp_ms = draw(st.none() | numbers)
    parts = draw(numbers), draw(numbers), draw(CONTENT), draw(CONTENT), headers, control
    return Schedule(*parts, timestamp_ms=timestamp_ms)


@given(st.lists(plain_schedules(), max_size=5), st.sampled_from([Partitioning.BY_KEY, Partitioning.SAME_PARTITION]))
def test_the_records_of_a_batch_are_those_of_the_equal_schedules(
    schedules: list[Schedule], partitioning: Partitioning
) -> None:
    large = a_writer(partitioning)
    large.certain_bytes = 10_000

    leaving, _ = large.packed(SHARD, schedules, SENT_MS)

    assert len(leaving) == min(len(schedules), 1)
    assert [*one_by_one(leaving)] == a_writer(partitioning).records(SHARD, schedules, SENT_MS)[0]


def all_placements() -> Iterator[tuple[Headers | None, int]]:
    """Every place of the control header among up to three others, and none."""
    own: Headers = [("a", b"1"), ("", None), ("a", b"")]
    yield None, NO_CONTROL_HEADER
    for count in range(len(own) + 1):
        yield own[:count], NO_CONTROL_HEADER
        for place in range(count + 1):
            yield [*own[:place], AT, *own[place:count]], place


@pytest.mark.parametrize(("headers", "control"), [*all_placements()])
def test_the_control_header_is_taken_out_of_a_batch_wherever_it_stands(headers: Headers | None, control: int) -> None:
    schedule, roomy = alone(1, headers, control), a_writer()
    roomy.certain_bytes = 10_000

    leaving, _ = roomy.packed(SHARD, [schedule], SENT_MS)

    assert [type(each) for each in leaving] == [Batch]
    assert [*one_by_one(leaving)] == a_writer().records(SHARD, [schedule], SENT_MS)[0]


def test_a_schedule_with_several_control_headers_goes_alone() -> None:
    assert packed(a_writer(), plain(1), alone(2, [AT, AT], SEVERAL_CONTROL_HEADERS)) == [[1], 2]


def test_records_are_the_same_each_time_that_a_batch_is_asked_for_them() -> None:
    leaving, _ = a_writer().packed(SHARD, [plain(1)], SENT_MS)

    assert [*one_by_one(leaving)] == [*one_by_one(leaving)]


# -- receipts


@given(
    st.from_regex(r"[a-zA-Z0-9._%-]{1,249}", fullmatch=True),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**53),
    st.integers(0, 2**53),
    st.integers(0, 2**63 - 1),
)
def test_the_parts_of_a_receipt_are_those_of_its_form(
    topic: str, partition: int, sent_ms: int, due_ms: int, offset: int
) -> None:
    between, after = receipt_parts(topic, partition, sent_ms)

    timeless = ReceiptForm.of(topic, partition, sent_ms).timeless
    assert b"%d%b%d%b" % (due_ms, between, offset, after) == timeless % (due_ms, offset)
