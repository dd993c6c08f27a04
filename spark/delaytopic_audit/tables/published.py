"""The tables that a run publishes: graded minutes and findings, with names of DelayTopics and with times."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType, TimestampType

from delaytopic_audit.model.words import MINUTE_MS
from delaytopic_audit.tables.schemas import FINDINGS, NAMES, VERDICTS

_TIMES: Final = {"minute": "minute", "deadline_ms": "deadline"}
"""The columns that are times for others, with the names that they have there."""


def _published(schema: StructType) -> StructType:
    """Return the columns of a table of graded minutes as others see them."""
    fields = [NAMES["name"], *schema.fields[1:]]
    times = {name: StructField(told, TimestampType()) for name, told in _TIMES.items()}
    named = [StructField("delay_topic", fields[0].dataType), *fields[1:]]
    return StructType([times.get(field.name, field) for field in named])


PUBLISHED: Final = {"minutes": ("verdicts", _published(VERDICTS)), "findings": ("findings", _published(FINDINGS))}
"""The ledger's table that each is made of, and its columns. `minutes` has the counts of each source partition and
minute, and `findings` records of which there is something to say."""


def published(rows: DataFrame, names: DataFrame) -> DataFrame:
    """Return rows of verdicts or findings as others see them: of DelayTopics that count, and of minutes that count.

    `names` is a table NAMES. Columns that the rows have beyond their schema stay.
    """
    named = rows.join(sf.broadcast(names), "delay_topic").filter(sf.col("minute") >= sf.col("floor"))
    return named.select(*(_column(name) for name in rows.columns))


def _column(name: str) -> Column:
    if name == "delay_topic":
        return sf.col("name").alias(name)
    factor = MINUTE_MS if name == "minute" else 1
    return sf.timestamp_millis(sf.col(name) * factor).alias(_TIMES[name]) if name in _TIMES else sf.col(name)
