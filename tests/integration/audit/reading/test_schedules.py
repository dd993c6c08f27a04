"""Schedules become the same rows by SQL as by Python, however odd their headers are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.integration.audit.reading.test_receipts import SCHEMA, as_client
from tests.unit.audit.messages import FakeMessage, config_for, reading

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect
from delaytopic_audit.model.manifest import Role, RulesFrom
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.decoding import Row, decoder_for
from delaytopic_audit.reading.schedules import plain_schedule

pytestmark = pytest.mark.long

AT_MS = 1_795_269_686_270
AN_HOUR_MS = 3_600_000
PLAIN: list[list[tuple[str, bytes | None]] | None] = [
    None,
    [],
    [("x", b"y"), ("x", None)],
    [("deliver-at", b"%d" % (AT_MS + 5))],
    [("deliver-at", b"0")],
    [("x", None), ("deliver-after", b"000000000005000"), ("Deliver-At", b"5")],
    [("deliver-after", b"%d" % AN_HOUR_MS)],
    [("deliver-at\0x", b"%d" % AT_MS)],
    [("x", b"y")] * 64,
]
"""Headers that SQL reads; beside a fixed delay none that says when."""
OTHERS: list[list[tuple[str, bytes | None]] | None] = [
    [("deliver-after", b"%d" % (AN_HOUR_MS + 1))],
    [("deliver-at", b"1"), ("deliver-at", b"2")],
    [("deliver-at", b"%d" % AT_MS), ("deliver-to", b"elsewhere")],
    [("deliver-id", b"a")],
    [("deliver-id", b"a"), ("deliver-action", b"cancel")],
    [("deliver-expires-at", b"%d" % (AT_MS + 1))],
    [("deliver-cron", b"* * * * *")],
    *([("deliver-at", value)] for value in (None, b"", b"tomorrow", b"-1", b" 1", b"1\n", b"\xff", "٣".encode())),
    *([("deliver-after", value)] for value in (None, b"90s", b"1h30m", b"9" * 18, b"9" * 19, b"9" * 5_000)),
    [("x", b"y")] * 65,
    [("x", b"y")] * 300,
]
"""Headers that are left to the dialect."""
TIMES = [(1, AT_MS), (0, AT_MS), (0, 0), (0, -5), (0, 1 << 46), (-1, -1)]
"""Kinds of timestamp as the connector counts them, with the timestamp."""


def config(schedule: dict[str, Any]) -> RelayConfig:
    written = config_for("a", "b", "a.dlq", []).to_document()
    return RelayConfig.model_validate({**written, "schedule": {"maxDelay": "1h", **schedule}})


def has_control(headers: list[tuple[str, bytes | None]] | None) -> bool:
    return any(name.startswith("deliver-") for name, _ in headers or ())


def by_python(of: RelayConfig, records: list[Any], generations: Sequence[RulesFrom] = ()) -> list[Row]:
    decode = decoder_for(Role.SOURCE, "a", of, generations)
    return [
        decode(FakeMessage((topic, partition, offset), as_client(headers), append_ms, clock + 1))
        for topic, partition, offset, _, headers, clock, append_ms in records
    ]


@pytest.mark.takes_long("a cold Spark compiles many functions")
@pytest.mark.parametrize(
    "schedule", [{}, {"defaultDelay": "5m"}, {"fixedDelay": "5m"}], ids=["none", "default", "fixed"]
)
def test_plain_schedules_become_the_same_rows_by_sql_as_by_python(
    spark: SparkSession, schedule: dict[str, Any]
) -> None:
    of = config(schedule)
    headers = list(product([*PLAIN, *OTHERS], TIMES))
    records = [("a", 1, number, None, each, clock, at_ms) for number, (each, (clock, at_ms)) in enumerate(headers)]

    found = spark.createDataFrame(records, SCHEMA).select(plain_schedule(of).alias("row")).collect()

    rows = [tuple(row) if row is not None else None for (row,) in found]
    expected = by_python(of, records)
    assert [row or other for row, other in zip(rows, expected, strict=True)] == expected
    by_sql = [each for row, (each, time) in zip(rows, headers, strict=True) if row is not None and time == TIMES[0]]
    assert by_sql == [each for each in PLAIN if "fixedDelay" not in schedule or not has_control(each)]


@pytest.mark.takes_long("a cold Spark compiles many functions")
def test_schedules_become_the_same_rows_by_sql_as_by_python_by_the_rules_of_their_offsets(spark: SparkSession) -> None:
    of = config({"defaultDelay": "5m"})
    generations = [
        *(reading(1, 2, default_delay_ms=1_000), reading(1, 4, delay_ms=2_000), reading(1, 6, reader=9)),
        *(reading(1, 8, dialect=Dialect.BLACK_BOX), reading(2, 0, max_delay_ms=1), reading(2, 5, max_delay_ms=9)),
    ]
    kinds = [[], [("deliver-at", b"%d" % (AT_MS + 5))]]
    places = [(partition, 2 * offset + place) for partition in (1, 2) for offset in range(5) for place in (0, 1)]
    records = [("a", *place, None, kinds[place[1] % 2], 1, AT_MS) for place in places]

    found = spark.createDataFrame(records, SCHEMA).select(plain_schedule(of, generations).alias("row")).collect()

    rows = [tuple(row) if row is not None else None for (row,) in found]
    expected = by_python(of, records, generations)
    assert [row or other for row, other in zip(rows, expected, strict=True)] == expected
    plain = {place: row[3] - AT_MS for place, row in zip(places, rows, strict=True) if row is not None}
    assert plain == {
        (1, 0): 1_000,
        (1, 1): 5,
        (1, 2): 1_000,
        (1, 3): 5,
        (1, 4): 2_000,
        **{(2, offset): 0 for offset in range(0, 10, 2)},
        **{(2, offset): 5 for offset in (5, 7, 9)},
    }
    assert {row[0] for place, row in zip(places, expected, strict=True) if place in ((1, 6), (1, 7))} == {Kind.IGNORED}


def test_a_schedule_with_a_name_that_is_not_utf_8_is_left_to_the_dialect(spark: SparkSession) -> None:
    record = ("a", 1, 0, None, [("\ufffd", b"")], 1, AT_MS)

    ((row,),) = spark.createDataFrame([record], SCHEMA).select(plain_schedule(config({})).alias("row")).collect()

    assert row is None
