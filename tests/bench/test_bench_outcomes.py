from __future__ import annotations

from bench.cases.outcomes import Kind, cancelled_by, endings, kind_of, write
from bench.records import PARTITIONS, key_of, partition_of

from delaytopic_api.records import ACTION_CANCEL, DELIVER_ACTION, DELIVER_ID

RECORDS = 20_000


def test_each_cancel_follows_a_record_that_waits_in_its_partition() -> None:
    cancels = [each for each in range(RECORDS) if kind_of(each) is Kind.CANCEL and cancelled_by(each) >= 0]

    assert all(kind_of(cancelled_by(each)) is Kind.LATER for each in cancels)
    assert all(partition_of(cancelled_by(each)) == partition_of(each) for each in cancels)
    assert len({cancelled_by(each) for each in cancels}) == len(cancels)


def test_a_cancel_names_the_id_of_another_record() -> None:
    sequence = RECORDS - 1

    assert write(sequence, 17, "") == (
        key_of(sequence),
        b"",
        [(DELIVER_ACTION, ACTION_CANCEL), (DELIVER_ID, key_of(cancelled_by(sequence)))],
    )


def test_half_is_delivered_and_a_quarter_are_cancels() -> None:
    found = endings(RECORDS)

    assert found["Delivered"] == RECORDS // 2
    assert found["Cancelled"] + found["NotPending"] == RECORDS // 4
    assert found["NotPending"] == 250 * PARTITIONS
