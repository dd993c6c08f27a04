"""Receipts become the same rows by SQL as by Python, however odd the headers are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from tests.unit.audit.messages import FakeMessage, config_for

from delaytopic_audit.model.manifest import Role
from delaytopic_audit.model.words import Kind
from delaytopic_audit.reading.decoding import decoder_for
from delaytopic_audit.reading.receipts import deliveries
from delaytopic_audit.tables.schemas import READ

pytestmark = pytest.mark.long

NAME = "delay-receipt"
GOOD = b"1795269686270:3:12345:1795269686271:a"
OF_OTHER = b"1:0:0:1:other"
VALUES = (
    GOOD,
    OF_OTHER,
    b"-5:0:0:1:a",
    b"",
    None,
    b"nonsense",
    GOOD + b"\n",
    GOOD + b"\n\n",
    b" " + GOOD,
    GOOD + b":a",
    GOOD.replace(b"a", b"\xff"),
    GOOD.replace(b"a", "ä".encode()),
    "٣:3:12345:1795269686271:a".encode(),
    b"9223372036854775807:2147483647:9223372036854775807:1:a",
    b"9223372036854775808:0:0:1:a",
    b"0:2147483648:0:1:a",
    b"0:0:9223372036854775808:1:a",
    b"0:0:0:9223372036854775808:a",
    b"0:0:0:0:" + b"a" * 250,
    GOOD.replace(b":12345:", b":12345@1795269600000:"),
    GOOD.replace(b":12345:", b":12345@9223372036854775808:"),
    GOOD.replace(b":12345:", b":12345@:"),
    GOOD.replace(b":12345:", b":12345@-1:"),
    GOOD.replace(b":12345:", b":12345@1@2:"),
    GOOD.replace(b":3:", b":3@1:"),
    b"1795269686270@1:3:12345:1795269686271:a",
)
HEADERS: list[list[tuple[str, bytes | None]] | None] = [
    None,
    [],
    *([(NAME, value)] for value in VALUES),
    *([(NAME, GOOD), (NAME, value)] for value in VALUES),
    [(NAME, OF_OTHER), (NAME, GOOD), ("x", None)],
    [("Delay-Receipt", GOOD)],
    [(f"{NAME}\0x", GOOD)],
    [("\0", b""), (NAME, GOOD)],
]
SCHEMA = (
    "topic string, partition int, offset bigint, key binary, headers array<struct<key: string, value: binary>>, "
    "timestampType int, timestamp_ms bigint"
)


@pytest.mark.takes_long("a cold Spark compiles many functions")
def test_receipts_become_the_same_rows_by_sql_as_by_python(spark: SparkSession) -> None:
    records = [("b", 1, number, None, each, number % 2, 1_000 + number) for number, each in enumerate(HEADERS)]

    found = deliveries(spark.createDataFrame(records, SCHEMA), "a").select(*READ.names).collect()

    decode = decoder_for(Role.TARGET, "b", config_for("a", "b", "a.dlq", []))
    expected = [
        # The client library ends names at a null character.
        decode(FakeMessage((topic, partition, offset), as_client(headers), append_ms, clock + 1))
        for topic, partition, offset, _, headers, clock, append_ms in records
    ]
    assert [tuple(row) for row in found] == expected
    assert sum(row.kind == Kind.DELIVERED for row in found) > 5


def test_a_name_that_is_not_utf_8_makes_a_record_foreign(spark: SparkSession) -> None:
    record = ("b", 1, 0, None, [("\ufffd", b""), (NAME, GOOD)], 1, 1_000)

    (row,) = deliveries(spark.createDataFrame([record], SCHEMA), "a").collect()

    assert (row.kind, row.partition, row.offset) == (Kind.FOREIGN, -1, -1)


def as_client(headers: list[tuple[str, bytes | None]] | None) -> list[tuple[str, bytes | None]] | None:
    return None if headers is None else [(name.partition("\0")[0], value) for name, value in headers]
