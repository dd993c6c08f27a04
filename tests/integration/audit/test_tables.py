"""The audit's tables, function by function, on a few rows."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from delaytopic_audit.model.words import FOLLOWS, MINUTE_MS, Kind, bucket_value_ms
from delaytopic_audit.tables import frames as tables
from delaytopic_audit.tables.digests import compared, digests, merged
from delaytopic_audit.tables.judging import judged_alike, judged_one_by_one, postponements, withdrawals
from delaytopic_audit.tables.links import links, weighed
from delaytopic_audit.tables.schemas import CHAINED, COMMANDS, COUNTS, EXTRACT, JUDGED, PLACES, RECORDS, WITHDRAWALS
from delaytopic_audit.tables.verdicts import bucket_of, findings, sums, verdicts

M = MINUTE_MS

pytestmark = pytest.mark.long


def frame(spark: SparkSession, schema: StructType, *rows: dict[str, Any]) -> DataFrame:
    """Rows by name, of one DelayTopic unless another is named; what is not named is null."""
    whole = ({"delay_topic": 1, **row} for row in rows)
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in whole], schema)


def ruled(rows: DataFrame, *thresholds: int, **others: int) -> DataFrame:
    """Rows with usual rules beside them, or with some others."""
    rules = {"allowed_ms": 100, "grace_ms": 1_000, "clock_tolerance_ms": 5, "max_skew_ms": 250, **others}
    columns = {name: sf.lit(value).cast("long") for name, value in rules.items()}
    columns["tells_once"] = sf.lit(True)
    return rows.withColumns({**columns, "thresholds": sf.array(*(sf.lit(each).cast("long") for each in thresholds))})


def places(spark: SparkSession, **known: Any) -> DataFrame:
    """Return the facts that are known of a source partition."""
    return frame(spark, PLACES, *([{"partition": 0, **known}] if known else []))


def ask(offset: int, due_ms: int, **more: Any) -> dict[str, Any]:
    """A schedule, as extract and as ledger row."""
    base = {"kind": int(Kind.SCHEDULE), "partition": 0, "offset": offset, "due_ms": due_ms, "topic": "t"}
    return {"append_ms": 0, "deadline_ms": due_ms, "by_broker": True, **base, **more}


def arrival(offset: int, due_ms: int, append_ms: int, **more: Any) -> dict[str, Any]:
    """A delivery of it."""
    at = {"append_ms": append_ms, "sent_ms": append_ms, "at_partition": 1, "at_offset": 9}
    return {**ask(offset, due_ms), "kind": int(Kind.DELIVERED), **at, **more}


def letter(offset: int, append_ms: int, **more: Any) -> dict[str, Any]:
    """A dead letter of it."""
    row = ask(offset, append_ms, append_ms=append_ms, topic=None, reason="expired")
    return {**row, "due_ms": None, "kind": int(Kind.DEAD_LETTER), **more}


def reject(offset: int, append_ms: int) -> dict[str, Any]:
    """A record that cannot be scheduled."""
    return {**ask(offset, append_ms, append_ms=append_ms, topic=None), "due_ms": None, "kind": int(Kind.REJECT)}


def test_asks_have_their_deadline_at_the_later_of_due_and_append_time(spark: SparkSession) -> None:
    extract = frame(spark, EXTRACT, ask(0, 500), ask(1, 500, append_ms=700), reject(2, 800))

    found = {row.offset: row.deadline_ms for row in tables.asks(extract).collect()}

    assert found == {0: 500, 1: 700, 2: 800}


def test_deliveries_learn_the_deadline_of_records_that_were_overdue_on_arrival(spark: SparkSession) -> None:
    extract = frame(spark, EXTRACT, ask(1, 500, append_ms=700), arrival(0, 500, 510), arrival(1, 500, 710))

    found = tables.deliveries(extract, tables.overdue(extract)).collect()

    assert {row.offset: row.deadline_ms for row in found} == {0: 500, 1: 700}


def test_dead_letters_take_the_deadline_of_their_source_record_or_their_own_time(spark: SparkSession) -> None:
    extract = frame(spark, EXTRACT, ask(0, 500), letter(0, 900), letter(7, 950))

    found = tables.answered(tables.answers(extract), tables.asks(extract), places(spark)).collect()

    assert {row.offset: row.deadline_ms for row in found} == {0: 500, 7: 950}


def test_what_is_put_off_answers_the_ask_that_it_stands_for_and_is_one_itself(spark: SparkSession) -> None:
    extract = frame(spark, EXTRACT, ask(0, 500), ask(3, 9_000, append_ms=501, at_offset=0))

    asks = tables.asks(extract)
    found = tables.answered(tables.answers(extract), asks, places(spark)).collect()

    assert sorted((row.offset, row.deadline_ms) for row in asks.collect()) == [(0, 500), (3, 9_000)]
    assert [(row.kind, row.offset, row.at_offset, row.deadline_ms, row.due_ms) for row in found] == [
        (Kind.PUT_OFF, 0, 3, 500, 9_000)
    ]


def test_schedules_for_a_time_in_seconds_are_told_from_others_and_due_when_appended(spark: SparkSession) -> None:
    meant_ms = 1_795_269_686_000
    asked = [ask(0, meant_ms // 1_000, append_ms=meant_ms), ask(1, meant_ms, append_ms=meant_ms)]
    extract = frame(spark, EXTRACT, *asked)

    found = extract.select("offset", tables.is_ancient().alias("ancient")).collect()

    assert {row.offset: row.ancient for row in found} == {0: True, 1: False}
    assert {row.deadline_ms for row in tables.asks(extract).collect()} == {meant_ms}


def test_outcomes_of_records_from_before_the_audit_are_out_of_scope(spark: SparkSession) -> None:
    records = frame(spark, RECORDS, ask(1, 500), arrival(1, 500, 510), arrival(2, 500, 510))

    found = tables.in_scope(records, places(spark, first_offset=2)).collect()

    assert sorted((row.kind, row.offset) for row in found) == [(Kind.SCHEDULE, 1), (Kind.DELIVERED, 2)]


def test_outcomes_of_records_that_are_not_judged_are_out_of_scope(spark: SparkSession) -> None:
    records = frame(spark, RECORDS, *(arrival(offset, 500, 510) for offset in range(5)))

    found = tables.in_scope(records, places(spark, unjudged=[(1, 4)])).collect()

    assert sorted(row.offset for row in found) == [0, 4]


def test_digests_agree_when_each_ask_has_its_outcome_on_its_topic(spark: SparkSession) -> None:
    records = frame(
        spark, RECORDS, ask(0, 5), ask(1, 6), arrival(1, 6, 8), arrival(0, 5, 9), reject(2, M), letter(2, M)
    )

    assert compared(digests(records)).filter("is_odd").collect() == []


def test_digests_disagree_in_the_minute_of_a_loss_a_duplicate_a_stray_or_a_swap(spark: SparkSession) -> None:
    lost = [ask(0, 0)]
    doubled = [ask(1, M), arrival(1, M, M), arrival(1, M, M)]
    elsewhere = [ask(2, 2 * M), arrival(2, 2 * M, 2 * M, topic="u")]
    swapped = [ask(3, 3 * M), arrival(4, 3 * M, 3 * M)]
    lettered = [ask(5, 4 * M), letter(5, 4 * M)]
    right = [ask(6, 5 * M), arrival(6, 5 * M, 5 * M)]
    records = frame(spark, RECORDS, *lost, *doubled, *elsewhere, *swapped, *lettered, *right)

    found = compared(digests(records)).filter("is_odd").collect()

    assert sorted(row.minute for row in found) == [0, 1, 2, 3, 4]


def test_digests_of_parts_merge_to_the_digest_of_the_whole(spark: SparkSession) -> None:
    rows = [ask(0, 5), ask(1, 6), arrival(1, 6, 8), ask(2, M)]
    whole = digests(frame(spark, RECORDS, *rows))

    parts = merged(digests(frame(spark, RECORDS, *rows[:2])), digests(frame(spark, RECORDS, *rows[2:])))

    assert sorted(map(tuple, parts.collect())) == sorted(map(tuple, whole.collect()))


def test_a_later_command_of_the_id_withdraws_a_schedule_up_to_the_grace_after_its_deadline(spark: SparkSession) -> None:
    schedules = frame(spark, RECORDS, *(ask(n, 10_000, id_hash=n) for n in range(5)))
    own = [{**ask(n, 0, id_hash=n), "append_ms": 1} for n in range(5)]
    later = [{**ask(10 + n, 0, id_hash=n), "kind": int(Kind.CANCEL)} for n in range(4)]
    moments = (9_000, 9_001, 11_000, 11_001)
    commands = frame(spark, COMMANDS, *own, *(row | {"append_ms": at} for row, at in zip(later, moments, strict=True)))

    found = withdrawals(ruled(schedules), commands).collect()

    assert {row.offset: row.certain for row in found} == {0: True, 1: False, 2: False}
    assert {row.by for row in found} == {Kind.CANCEL}


def command(kind: Kind, offset: int, append_ms: int, due_ms: int | None = None, **more: Any) -> dict[str, Any]:
    """A command of the only id."""
    row = {"kind": int(kind), "partition": 0, "id_hash": 1, "offset": offset, "append_ms": append_ms, "due_ms": due_ms}
    return {**row, "deadline_ms": due_ms, **more}


def start(offset: int, append_ms: int, due_ms: int, stands_for: int | None = None) -> dict[str, Any]:
    return command(Kind.SCHEDULE, offset, append_ms, due_ms, at_offset=stands_for)


def keep_alive(offset: int, append_ms: int, due_ms: int) -> dict[str, Any]:
    return command(Kind.POSTPONE, offset, append_ms, due_ms)


def end(offset: int, append_ms: int) -> dict[str, Any]:
    return command(Kind.CANCEL, offset, append_ms)


FIRST, LATER = start(0, 0, 10_000), keep_alive(1, 5_000, 15_000)
PUT_OFF: dict[str, tuple[list[dict[str, Any]], dict[int, tuple[object, ...]]]] = {
    "nobody puts it off": ([FIRST], {}),
    "it is put off": ([FIRST, LATER, start(2, 10_001, 15_000, 0)], {0: (Kind.POSTPONE, True, 15_000, 15_000)}),
    "the latest time counts": (
        [FIRST, LATER, keep_alive(2, 6_000, 12_000)],
        {0: (Kind.POSTPONE, True, 15_000, 15_000)},
    ),
    "a shorter time counts for nothing": ([FIRST, keep_alive(1, 5_000, 9_000)], {}),
    "it may have come too late": ([FIRST, keep_alive(1, 9_001, 15_000)], {0: (Kind.POSTPONE, False, None, 15_000)}),
    "a relay puts it off by itself": ([FIRST, start(2, 10_001, 15_000, 0)], {}),
    "it is ended before its new time": ([FIRST, LATER, end(2, 14_000)], {0: (Kind.CANCEL, True, 15_000, 15_000)}),
    "it is ended while it is on its way": (
        [FIRST, LATER, end(2, 10_001), start(3, 10_002, 15_000, 0), end(4, 99_000)],
        {0: (Kind.CANCEL, True, 15_000, 15_000), 3: (Kind.CANCEL, True, None, None)},
    ),
    "another one begins while it is on its way": (
        [FIRST, LATER, start(2, 10_001, 30_000), start(3, 10_002, 15_000, 0)],
        {0: (Kind.SCHEDULE, True, 15_000, 15_000), 3: (Kind.SCHEDULE, True, None, None)},
    ),
    "it is put off again, and ended": (
        [
            *(FIRST, LATER, start(2, 10_001, 15_000, 0)),
            *(keep_alive(3, 12_000, 20_000), start(4, 15_001, 20_000, 2), end(5, 19_000)),
        ],
        {
            0: (Kind.CANCEL, True, 15_000, 20_000),
            2: (Kind.CANCEL, True, 20_000, 20_000),
            4: (Kind.CANCEL, True, None, None),
        },
    ),
}


def test_what_puts_a_schedule_off_and_ends_it_is_told_by_the_commands_of_others(spark: SparkSession) -> None:
    commands = [row | {"partition": place} for place, (rows, _) in enumerate(PUT_OFF.values()) for row in rows]
    schedules = frame(spark, RECORDS, *(each for each in commands if each["kind"] == Kind.SCHEDULE))

    found = postponements(ruled(schedules), frame(spark, COMMANDS, *commands)).collect()

    told = {(row.partition, row.offset): (row.by, row.certain, row.from_ms, row.until_ms) for row in found}
    assert told == {
        (place, offset): row for place, (_, expected) in enumerate(PUT_OFF.values()) for offset, row in expected.items()
    }


def put_off_to(offset: int, due_ms: int) -> dict[str, Any]:
    """The outcome of a schedule that was written again."""
    return {**ask(offset, 5, kind=int(Kind.PUT_OFF)), "due_ms": due_ms}


def test_what_is_put_off_to_the_time_that_was_promised_counts_as_replaced(spark: SparkSession) -> None:
    promised = {"minute": 0, "partition": 0, "by": int(Kind.POSTPONE), "certain": False}
    window = {"from_ms": 90_000, "until_ms": 95_000}
    moves = {0: 90_000, 1: 95_000, 2: 89_999, 3: 95_001, 4: None}
    put_off = [put_off_to(offset, due_ms) for offset, due_ms in moves.items() if due_ms]
    both = [ask(5, 5), arrival(5, 5, 6), put_off_to(5, 90_000)]
    records = frame(spark, RECORDS, *(ask(offset, 5) for offset in moves), *put_off, *both, put_off[0] | {"offset": 7})
    ended = [{**promised, **window, "offset": offset} for offset in moves]

    judged = judged_one_by_one(ruled(records), frame(spark, WITHDRAWALS, *ended), frame(spark, CHAINED)).collect()

    assert {row.offset: (row.outcome, row.copies, row.unwanted) for row in judged} == {
        0: ("replaced", 0, False),
        1: ("replaced", 0, False),
        2: ("lost", 0, False),
        3: ("lost", 0, False),
        4: ("lost", 0, False),
        5: ("delivered", 1, True),
    }


def recurs(offset: int, **more: Any) -> dict[str, Any]:
    """A record that recurs."""
    return ask(offset, 5, kind=int(Kind.RULE), **more)


def test_an_occurrence_is_an_ask_of_its_own_and_answers_the_one_before_it(spark: SparkSession) -> None:
    chain = [recurs(0), *(ask(at, due_ms, at_offset=at - 1, reason=FOLLOWS) for at, due_ms in ((1, 900), (2, 1_800)))]
    extract = frame(spark, EXTRACT, *chain)

    asks = tables.asks(extract)
    found = tables.answered(tables.answers(extract), asks, places(spark)).collect()

    assert sorted((row.offset, row.deadline_ms) for row in asks.collect()) == [(0, 0), (1, 900), (2, 1_800)]
    assert sorted((row.kind, row.offset, row.at_offset, row.deadline_ms) for row in found) == [
        (Kind.RESOLVED, 0, 1, 0),
        (Kind.RESOLVED, 1, 2, 900),
    ]


def test_what_recurs_is_followed_by_its_first_occurrence_or_is_a_dead_letter_or_is_lost(spark: SparkSession) -> None:
    resolved = [ask(offset, 5, kind=int(Kind.RESOLVED), topic=None) for offset in (0, 4, 5, 6)]
    records = frame(
        spark,
        RECORDS,
        *(recurs(0), recurs(1), letter(1, 5), recurs(2), recurs(3), recurs(4), arrival(4, 5, 6)),
        *(ask(5, 5), arrival(5, 5, 6), ask(6, 5), *resolved),
    )
    ended = [{"minute": 0, "partition": 0, "offset": 3, "by": int(Kind.CANCEL), "certain": True}]

    judged = judged_one_by_one(ruled(records), frame(spark, WITHDRAWALS, *ended), frame(spark, CHAINED)).collect()

    assert {row.offset: (row.outcome, row.copies, row.unwanted) for row in judged} == {
        0: ("replaced", 0, False),
        1: ("dead-lettered", 1, False),
        2: ("lost", 0, False),
        3: ("cancelled", 0, False),
        4: ("delivered", 1, True),
        5: ("delivered", 1, False),
        6: ("lost", 0, False),
    }


def test_a_cancel_ends_the_occurrence_that_was_written_behind_it(spark: SparkSession) -> None:
    chain = [command(Kind.RULE, 0, 0, 0), start(1, 1, 10_000, 0), start(3, 10_001, 20_000, 1)]
    commands = [*chain, end(2, 10_000)]

    found = postponements(ruled(frame(spark, RECORDS, *chain[1:])), frame(spark, COMMANDS, *commands)).collect()

    assert {row.offset: (row.by, row.certain) for row in found} == {
        1: (Kind.CANCEL, False),
        3: (Kind.CANCEL, True),
    }


def in_chain(offset: int, after: int | None, hour: int | None, at_hour: float, **more: Any) -> dict[str, Any]:
    """A record that recurs each hour, or an occurrence of it that follows another record; written at an hour."""
    slot_ms = None if hour is None else hour * HOUR_MS
    row = recurs(offset) if after is None else ask(offset, slot_ms or 0, reason=FOLLOWS)
    own = {"at_offset": after, "slot_ms": slot_ms, "next_ms": (slot_ms or 0) + HOUR_MS, "rule": EACH_HOUR, "id_hash": 1}
    return row | own | {"append_ms": int(at_hour * HOUR_MS)} | more


HOUR_MS, EACH_HOUR = 3_600_000, '{"deliver-every": "1h"}'
CHAIN = [
    in_chain(0, None, None, 0),
    *(in_chain(1, 0, 1, 0), in_chain(2, 1, 2, 1), in_chain(3, 2, 5, 5.5), in_chain(4, 3, 7, 5.6)),
    *(in_chain(5, 3, 7, 5.6), in_chain(6, 4, 8, 7), in_chain(7, 6, 9, 8, kind=int(Kind.REJECT))),
    *(in_chain(9, None, None, 8.5), in_chain(10, 9, 1, 8.6), in_chain(11, 10, 3, 8.7), in_chain(12, 11, 99, 99)),
]
"""Two chains of one id. In the first an occurrence is written late, one too far ahead, this one twice, and the last is
refused; in the second all are late, and the last is not read."""


def test_each_link_of_a_chain_knows_what_follows_it_and_how_many_slots_lie_between(spark: SparkSession) -> None:
    schedules = ruled(frame(spark, RECORDS, *CHAIN[:-1]), settled_ms=0)
    known = places(spark, unjudged=[(12, 13)])

    found = weighed(links(schedules, frame(spark, COMMANDS, *CHAIN[:-1]), known)).collect()

    hours = {row.offset: row.skipped_ms and row.skipped_ms / HOUR_MS for row in found}
    assert {row.offset: (row.is_surplus, row.is_followed, row.missed, row.skipped) for row in found} == {
        0: (False, True, 0, 0),
        1: (False, True, 0, 0),
        2: (False, True, 2, 0),
        3: (False, True, 0, 1),
        4: (False, True, 0, 0),
        5: (True, False, 0, 0),
        6: (False, True, 0, 0),
        9: (False, True, 0, 0),
        10: (False, True, 1, 0),
        11: (False, False, 0, 0),
    }
    assert {offset: hour for offset, hour in hours.items() if hour} == {3: 6}
    assert {row.offset: row.next_ms for row in found}[11] is None


def test_what_was_delivered_and_is_not_followed_breaks_its_chain_unless_a_command_or_its_policy_ended_it(
    spark: SparkSession,
) -> None:
    alone: dict[str, Any] = {
        "minute": 0,
        "partition": 0,
        "slot_ms": 5,
        "next_ms": 9,
        "is_followed": False,
        "is_surplus": False,
    }
    alone |= {"missed": 0, "skipped": 0, "settled_ms": 100, "tells_once": True}
    chained = [alone | {"offset": offset} for offset in range(6)]
    chained[1] |= {"next_ms": None}
    chained[3] |= {"ends_ms": 6, "missed": 2}
    chained[4] |= {"settled_ms": 5}
    records = frame(spark, RECORDS, *(ask(n, 5) for n in range(6)), *(arrival(n, 5, 6) for n in range(5)))
    ended = [{"minute": 0, "partition": 0, "offset": 2, "by": int(Kind.CANCEL), "certain": False}]

    judged = judged_one_by_one(ruled(records), frame(spark, WITHDRAWALS, *ended), frame(spark, CHAINED, *chained))

    assert {row.offset: (row.outcome, row.breaks, row.missed, row.awaited) for row in judged.collect()} == {
        0: ("delivered", True, 0, False),
        1: ("delivered", False, 0, False),
        2: ("delivered", False, 0, False),
        3: ("delivered", False, 2, False),
        4: ("delivered", False, 0, True),
        5: ("lost", False, 0, False),
    }


def test_where_digests_agree_each_outcome_is_judged_by_itself(spark: SparkSession) -> None:
    records = frame(spark, RECORDS, ask(0, 500), arrival(0, 500, 650), arrival(1, 500, 400), letter(2, 500))

    judged = {row.offset: row for row in judged_alike(ruled(records)).collect()}

    assert {at: (row.outcome, row.lateness_ms, row.early) for at, row in judged.items()} == {
        0: ("delivered", 150, False),
        1: ("delivered", -100, True),
        2: ("dead-lettered", None, False),
    }


def test_elsewhere_asks_and_outcomes_are_joined(spark: SparkSession) -> None:
    records = frame(
        spark,
        RECORDS,
        *(ask(0, 5), ask(1, 5), arrival(1, 5, 6), arrival(1, 5, 7), ask(2, 5), letter(2, 5), ask(3, 5), ask(4, 5)),
        *(arrival(5, 5, 6), reject(6, 5), reject(7, 5), letter(7, 5), ask(8, 5), arrival(8, 5, 6, topic="u")),
        *(ask(9, 5), arrival(9, 5, 6)),
    )
    by = {3: Kind.CANCEL, 4: Kind.SCHEDULE, 9: Kind.CANCEL}
    ended = [
        {"minute": 0, "partition": 0, "offset": offset, "by": int(kind), "certain": True} for offset, kind in by.items()
    ]

    judged = judged_one_by_one(ruled(records), frame(spark, WITHDRAWALS, *ended), frame(spark, CHAINED)).collect()

    assert {row.offset: (row.outcome, row.copies, row.unwanted) for row in judged} == {
        0: ("lost", 0, False),
        1: ("delivered", 2, False),
        2: ("dead-lettered", 1, False),
        3: ("cancelled", 0, False),
        4: ("replaced", 0, False),
        5: ("unknown", 1, False),
        6: ("lost", 0, False),
        7: ("dead-lettered", 1, False),
        8: ("misdirected", 1, False),
        9: ("delivered", 1, True),
    }


def test_a_record_is_early_only_beyond_what_its_receipt_proves_of_the_clocks(spark: SparkSession) -> None:
    due_ms = 10_000
    records = frame(
        spark,
        RECORDS,
        arrival(0, due_ms, due_ms - 5),
        arrival(1, due_ms, due_ms - 6),
        arrival(2, due_ms, due_ms - 200, sent_ms=due_ms),
        arrival(3, due_ms, due_ms - 300, sent_ms=due_ms),
    )

    judged = judged_alike(ruled(records)).collect()

    assert {row.offset: row.early for row in judged} == {0: False, 1: True, 2: False, 3: True}


def test_verdicts_count_and_findings_name_what_is_to_be_said(spark: SparkSession) -> None:
    row = {"minute": 0, "partition": 0, "deadline_ms": 0, "early": False, "unwanted": False, "copies": 1}
    judged = frame(
        spark,
        JUDGED,
        row | {"offset": 0, "outcome": "delivered", "lateness_ms": 100},
        row | {"offset": 1, "outcome": "delivered", "lateness_ms": 101, "copies": 3},
        row | {"offset": 2, "outcome": "lost", "copies": 0},
        row | {"offset": 3, "outcome": "unknown", "copies": 2},
    )

    [counts] = verdicts(sums(ruled(judged), []), judged, []).collect()
    said = sorted((each.finding, each.offset) for each in findings(ruled(judged)).collect())

    told = {name: value for name, value in counts.asDict().items() if value and name in (*COUNTS, "latest_ms")}
    assert told == {
        "asked": 3,
        "delivered": 2,
        "on_time": 1,
        "late": 1,
        "lost": 1,
        "duplicated": 1,
        "copies": 2,
        "unknown": 2,
        "latest_ms": 101,
    }
    assert said == [("duplicated", 1), ("late", 1), ("lost", 2), ("unknown", 3)]


def test_a_bucket_of_lateness_is_within_one_percent_of_everything_in_it(spark: SparkSession) -> None:
    rows = spark.range(1, 200_000, 7).withColumn("bucket", bucket_of(sf.col("id"))).collect()

    assert all(abs(bucket_value_ms(row.bucket) / row.id - 1) <= 0.01 for row in rows)
