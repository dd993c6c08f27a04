"""The columns of every table, in their order: each function that makes one ends in a select of these.

`delay_topic` is the number of a DelayTopic, which commits have beside its name: rows of other numbers do not count.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

_BYTE, _INT, _LONG, _TEXT, _TRUTH = ByteType(), IntegerType(), LongType(), StringType(), BooleanType()


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


EXTRACT: Final = _table(
    delay_topic=_INT,
    kind=_BYTE,
    partition=_INT,
    offset=_LONG,
    due_ms=_LONG,
    append_ms=_LONG,
    by_broker=_TRUTH,
    sent_ms=_LONG,
    id_hash=_LONG,
    topic=_TEXT,
    at_partition=_INT,
    at_offset=_LONG,
    reason=_TEXT,
)
"""One row a record read. `partition` and `offset` are always those of the source record. `append_ms` is the record's
own timestamp, `by_broker` whether it is LogAppendTime. `topic` is where an ask wants to go, and where an outcome is.
`at_offset` of an ask is the source offset of the one that was put off, and that it stands for; with a reason it is that
of the record, or of its occurrence, that it comes after. Such a reason is a link, as text, which a record that recurs
has, too."""

READ: Final = StructType(EXTRACT.fields[1:])
"""The extract as a reader makes it, before it is told of which DelayTopic the records are."""

RECORDS: Final = _table(
    delay_topic=_INT,
    deadline_ms=_LONG,
    kind=_BYTE,
    partition=_INT,
    offset=_LONG,
    due_ms=_LONG,
    append_ms=_LONG,
    sent_ms=_LONG,
    id_hash=_LONG,
    topic=_TEXT,
    at_partition=_INT,
    at_offset=_LONG,
    reason=_TEXT,
)
"""Asks and outcomes, each at its deadline: due time, or when the source record was appended if that was later.

Of what is told, `topic`, `at_partition` and `at_offset` are the place that it names: of the delivered record, of the
dead letter, or of the command that ended the schedule."""

COMMANDS: Final = _table(
    delay_topic=_INT,
    partition=_INT,
    id_hash=_LONG,
    offset=_LONG,
    append_ms=_LONG,
    kind=_BYTE,
    due_ms=_LONG,
    at_offset=_LONG,
    slot_ms=_LONG,
    next_ms=_LONG,
    rule=_TEXT,
)
"""Schedules and cancels with an id, what puts one off, and the places of cancels that are told to have met nothing.

What recurs has its `rule`, an occurrence its slot, and either the slot that has to follow, where one is left."""

OVERDUE: Final = _table(delay_topic=_INT, partition=_INT, offset=_LONG, append_ms=_LONG)
"""Schedules that were due before they were appended: their outcomes don't know their deadline."""

RUNS: Final = {"records": RECORDS, "commands": COMMANDS, "overdue": OVERDUE}
"""Tables of what runs have read, by name."""

DIGESTS: Final = _table(
    delay_topic=_INT, minute=_LONG, partition=_INT, kind=_BYTE, records=_LONG, hashes=_LONG, offsets=_LONG
)
"""Count, XOR of hashes and sum of offsets, for one side of one source partition in one minute."""

WITHDRAWALS: Final = _table(
    delay_topic=_INT,
    minute=_LONG,
    partition=_INT,
    offset=_LONG,
    by=_BYTE,
    certain=_TRUTH,
    from_ms=_LONG,
    until_ms=_LONG,
    by_offset=_LONG,
    withdrawn_ms=_LONG,
)
"""Schedules that a later command of their id ended (`by` SCHEDULE: replaced), put off or may have ended.

One that is put off has its new time between `from_ms`, which was surely read in time, and `until_ms`. `by_offset` is
where the command is, and `withdrawn_ms` when it was appended."""

LINKS: Final = _table(
    delay_topic=_INT,
    minute=_LONG,
    partition=_INT,
    offset=_LONG,
    slot_ms=_LONG,
    next_ms=_LONG,
    rule=_TEXT,
    is_surplus=_TRUTH,
    to_slot_ms=_LONG,
    to_due_ms=_LONG,
    to_ms=_LONG,
    settled_ms=_LONG,
    tells_once=_TRUTH,
)
"""Records that recur and occurrences of graded minutes, each with its own slot, the one that has to follow by its rule,
and the occurrence that does, chosen by `to_ms` at the latest. `is_surplus`: another occurrence has its slot, or its
rule has no such slot there."""

CHAINED: Final = _table(
    delay_topic=_INT,
    minute=_LONG,
    partition=_INT,
    offset=_LONG,
    slot_ms=_LONG,
    next_ms=_LONG,
    is_surplus=_TRUTH,
    missed=_LONG,
    skipped=_LONG,
    skipped_ms=_LONG,
    is_followed=_TRUTH,
    ends_ms=_LONG,
    settled_ms=_LONG,
    tells_once=_TRUTH,
)
"""The links, weighed: how many slots between it and what follows were missed by its policy, and how many were skipped
against it, from `skipped_ms` on. Where nothing follows, nothing need from `ends_ms` on, and `missed` are all."""

JUDGED: Final = _table(
    delay_topic=_INT,
    minute=_LONG,
    partition=_INT,
    offset=_LONG,
    deadline_ms=_LONG,
    outcome=_TEXT,
    copies=_LONG,
    early=_TRUTH,
    unwanted=_TRUTH,
    lateness_ms=_LONG,
    append_ms=_LONG,
    topic=_TEXT,
    at_partition=_INT,
    at_offset=_LONG,
    reason=_TEXT,
    outcomes=_LONG,
    untold=_TRUTH,
    untrue=_TEXT,
    awaited=_TRUTH,
    slot_ms=_LONG,
    repeats=_TRUTH,
    next_ms=_LONG,
    missed=_LONG,
    skipped=_LONG,
    skipped_ms=_LONG,
    breaks=_TRUTH,
)
"""One row for each source record of a graded minute, and for each outcome without one.

`outcomes` is the number of its records on the topic of outcomes, `untrue` the word of one that is not true. `awaited`:
its outcome, or what follows it, may be on its way. An occurrence has its slot, and `repeats` one that was delivered. Of
the slots from `next_ms` on some were missed, some skipped, or no occurrence follows: `breaks`."""

COUNTS: Final = (
    *("asked", "delivered", "on_time", "late", "early", "lost", "misdirected", "duplicated", "copies"),
    *("unwanted", "unknown", "cancelled", "replaced", "dead_lettered"),
    *("told", "untold", "told_twice", "retold", "untrue"),
    *("slots", "slots_missed", "slots_skipped", "slots_repeated", "chains_broken"),
)
TELLING: Final = tuple(
    name for name in COUNTS if name not in ("asked", "delivered", "on_time", "copies", "told", "retold", "slots")
)
"""The counts of what findings speak of."""
VERDICTS: Final = _table(
    delay_topic=_INT,
    minute=_LONG,
    partition=_INT,
    **dict.fromkeys(COUNTS, _LONG),
    latest_ms=_LONG,
    within=MapType(_LONG, _LONG),
)
"""The fates of the records of one source partition in one minute. `copies` are those beyond the first, and `retold`
the same of outcomes. `within` has the
number that were delivered at most so many ms late, for each further threshold that the minute was graded by."""

FINDINGS: Final = _table(
    delay_topic=_INT,
    finding=_TEXT,
    minute=_LONG,
    partition=_INT,
    offset=_LONG,
    deadline_ms=_LONG,
    lateness_ms=_LONG,
    copies=_LONG,
    topic=_TEXT,
    at_partition=_INT,
    at_offset=_LONG,
    reason=_TEXT,
)
"""Records of which there is something to say, with source coordinates, and where their first outcome is."""

HISTOGRAM: Final = _table(delay_topic=_INT, minute=_LONG, bucket=_INT, records=_LONG)
"""Latenesses of delivered records, in logarithmic buckets."""

PARTS: Final = {"verdicts": VERDICTS, "histogram": HISTOGRAM, "findings": FINDINGS}
"""Tables of graded minutes, by name."""

NAMES: Final = _table(delay_topic=_INT, name=_TEXT, floor=_LONG)
"""DelayTopics that count by their numbers, with the first minute that is not forgotten."""

_RANGES = ArrayType(StructType([StructField("start", _LONG), StructField("end", _LONG)]))

MEMBERS: Final = _table(
    delay_topic=_INT,
    is_judged=_TRUTH,
    floor=_LONG,
    open_from=_LONG,
    closed=_LONG,
    allowed_ms=_LONG,
    grace_ms=_LONG,
    clock_tolerance_ms=_LONG,
    max_skew_ms=_LONG,
    thresholds=ArrayType(_LONG),
    tells_once=_TRUTH,
    telling=MapType(_TEXT, _LONG),
    settled_ms=_LONG,
)
"""The rules of DelayTopics, of which `allowed_ms` is `lateness_ms`, and the minutes that a run grades of them: those
from `open_from`, up to and without `closed`, for the first time, and those from `floor` on again. One that the run does
not judge is only remembered. `telling` has the endings that a topic of outcomes has to tell, each with the time from
which on an untold one is a fault; what ended after `settled_ms` may be told yet."""

PLACES: Final = _table(delay_topic=_INT, partition=_INT, first_offset=_LONG, unjudged=_RANGES, forgotten=_RANGES)
"""The places of a source partition: where its audit began, the offsets that are not judged, and those that were
forgotten."""

GRADED: Final = _table(delay_topic=_INT, minute=_LONG, is_odd=_TRUTH, is_again=_TRUTH)
"""The minutes that a run grades: `is_odd` where asks and outcomes have to be joined, `is_again` where an earlier run
has graded them."""

MINUTES: Final = _table(minute=_LONG)
"""Minutes, of whichever DelayTopics."""

PLACED: Final = _table(minute=_LONG, is_again=_TRUTH, place=_INT)
"""The part that has a graded minute, by its place among those that a run writes."""

AWAITED: Final = _table(delay_topic=_INT, minute=_LONG)
"""Graded minutes with an end whose outcome may have been on its way."""

WINDOWS: Final = _table(
    delay_topic=_INT,
    floor=_LONG,
    start=_LONG,
    end=_LONG,
    width=_LONG,
    final_before=_LONG,
    ages=ArrayType(_LONG),
    excluded=_RANGES,
    counted=MapType(_LONG, _LONG),
    promised=ArrayType(_TEXT),
)
"""The minutes that reports are about, from `start`, up to and without `end`, in spans of `width`; the starts of the
windows of budgets and burn rates, latest first; excluded minutes; from which minute on each further threshold counts,
by its lateness; and the counts that break objectives of 100 %."""
