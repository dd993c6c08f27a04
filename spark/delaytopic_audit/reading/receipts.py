"""Deliveries from records as the connector hands them over, by functions of SQL: no Python sees them.

A receipt has one form, whatever the dialect of its source. The same records become the same rows as by `decoding`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_api.records import RECEIPT
from delaytopic_audit.model.words import Kind
from delaytopic_audit.tables.schemas import READ

UNREADABLE: Final = "\ufffd"
"""The place of bytes that are not UTF-8, in a header's name."""
LOG_APPEND_TIME: Final = 1
"""Of the connector's kinds of timestamp the one that a broker gives."""
# As `Receipt.parse` reads it.
_FORM: Final = r"\A-?[0-9]{1,19}:[0-9]{1,10}:[0-9]{1,19}(@[0-9]{1,19})?:[0-9]{1,19}:[a-zA-Z0-9._-]{1,249}\z"


def deliveries(records: DataFrame, source: str) -> DataFrame:
    """Return the extract of target topics; `source` is the topic whose records count, others are foreign."""
    read = records.withColumn("receipt", _receipt(source)).withColumn("at_partition", sf.col("partition"))
    mine = sf.col("receipt").isNotNull()
    columns = {
        "kind": sf.when(mine, int(Kind.DELIVERED)).otherwise(int(Kind.FOREIGN)),
        "partition": sf.coalesce("receipt.partition", sf.lit(-1)),
        "offset": sf.coalesce("receipt.offset", sf.lit(-1)),
        "due_ms": sf.col("receipt.due_ms"),
        "append_ms": sf.col("timestamp_ms"),
        "by_broker": sf.col("timestampType") == LOG_APPEND_TIME,
        "sent_ms": sf.col("receipt.sent_ms"),
        "id_hash": sf.lit(None),
        "topic": sf.col("topic"),
        "at_partition": sf.col("at_partition"),
        "at_offset": sf.col("offset"),
        "reason": sf.lit(None),
    }
    return read.select(*(columns[field.name].cast(field.dataType).alias(field.name) for field in READ))


def _receipt(source: str) -> Column:
    """Return the last receipt, that of the relay that wrote the record; null without one of this source."""
    named = sf.filter("headers", lambda header: sf.substring_index(header["key"], "\0", 1) == RECEIPT)
    text = sf.try_element_at(named, sf.lit(-1))["value"].cast("string")
    # The record's own timestamp stands behind its offset.
    word = sf.split(sf.regexp_replace(text, "@[0-9]*", ""), ":")
    numbers = {"due_ms": (0, "long"), "partition": (1, "int"), "offset": (2, "long"), "sent_ms": (3, "long")}
    parsed = {name: word.getItem(place).try_cast(kind) for name, (place, kind) in numbers.items()}
    unreadable = sf.exists("headers", lambda header: sf.contains(header["key"], sf.lit(UNREADABLE)))
    holds = ~unreadable & text.rlike(_FORM) & (word.getItem(4) == source)
    for number in parsed.values():
        holds = holds & number.isNotNull()
    return sf.when(holds, sf.struct(*(number.alias(name) for name, number in parsed.items())))
