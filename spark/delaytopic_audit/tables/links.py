"""The chains of an id, made of its commands: what follows each record that recurs, and each occurrence, and which slots
of the rule lie between.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from delaytopic_api.recurrence import Occurrence
from delaytopic_audit.model.chains import behind, between
from delaytopic_audit.model.words import Kind
from delaytopic_audit.tables.frames import is_kind, is_of_chain, is_recurring, minute, placed
from delaytopic_audit.tables.schemas import CHAINED, LINKS

AHEAD_MS: Final = 2_000
"""A relay whose clock is ahead of the broker's by more delivers nothing. So much later than the broker says that it was
written, what follows may have been chosen."""
_PARTITION: Final = ("delay_topic", "partition")
_SOURCE: Final = (*_PARTITION, "offset")
_ID: Final = (*_PARTITION, "id_hash")
_WEIGHED: Final = ("missed", "skipped", "skipped_ms", "ends_ms")


def links(schedules: DataFrame, commands: DataFrame, places: DataFrame) -> DataFrame:
    """Return the links of records that recur and of occurrences, which have the rules of their DelayTopic beside them.

    An occurrence follows the record that it names. Of several that name one, which a relay without transactions may
    write, the first follows it. Where nobody here can read records behind it, nothing has to.
    """
    unread = sf.exists("unjudged", lambda each: each["end"] > sf.col("offset"))
    asked = placed(schedules.filter(is_recurring()), places).select(
        *(*_ID, "offset", minute(), "settled_ms", "tells_once"), sf.coalesce(unread, sf.lit(False)).alias("is_unread")
    )
    recurs = commands.filter(is_of_chain()).join(asked.select(*_ID).distinct(), [*_ID], "left_semi")
    following = sf.struct("offset", "slot_ms", "due_ms", "append_ms")
    followed = (
        recurs.filter(sf.col("at_offset").isNotNull())
        .groupBy(*_PARTITION, "at_offset")
        .agg(sf.min(following).alias("following"))
    )
    before = recurs.select(
        *(*_PARTITION, sf.col("offset").alias("at_offset")),
        *(sf.col("rule").alias("rule_before"), sf.col("next_ms").alias("due_slot_ms")),
    )
    known = (
        _with_slots_before(recurs)
        .join(asked.drop("id_hash"), [*_SOURCE])
        .join(before, [*_PARTITION, "at_offset"], "left")
        .join(followed.withColumnRenamed("at_offset", "offset"), [*_SOURCE], "left")
    )
    columns = {
        "is_surplus": _is_surplus(),
        "to_slot_ms": sf.col("following.slot_ms"),
        "to_due_ms": sf.col("following.due_ms"),
        "to_ms": sf.col("following.append_ms") + AHEAD_MS,
        "next_ms": sf.when(sf.col("following").isNotNull() | ~sf.col("is_unread"), sf.col("next_ms")),
    }
    return known.withColumns(columns).select(*LINKS.names)


def _with_slots_before(recurs: DataFrame) -> DataFrame:
    """Add the last slot of the occurrences before each in its chain: a chain begins with a record of its own.

    What was written behind that, and follows an occurrence of the chain before, belongs to that one.
    """
    by_place = Window.partitionBy(*_ID).orderBy("place", "offset")
    begins = sf.max(sf.when(is_kind(Kind.RULE), sf.col("offset"))).over(by_place)
    of_chain = Window.partitionBy(*_ID, "begins").orderBy("place", "offset")
    earlier = of_chain.rowsBetween(Window.unboundedPreceding, -1)
    chains = recurs.withColumn("place", sf.coalesce("at_offset", "offset")).withColumn("begins", begins)
    return chains.withColumn("slot_before_ms", sf.max("slot_ms").over(earlier))


def _is_surplus() -> Column:
    """Return the condition that an occurrence has the slot of one before it, or one that its rule does not have."""
    again = sf.col("slot_ms") <= sf.col("slot_before_ms")
    strays = sf.col("due_slot_ms").isNull() | (sf.col("slot_ms") < sf.col("due_slot_ms"))
    known = sf.col("slot_ms").isNotNull() & sf.col("rule_before").isNotNull()
    return sf.coalesce(again, sf.lit(False)) | (known & strays)


def weighed(found: DataFrame) -> DataFrame:
    """Return what is missed and skipped on links.

    Python walks along the rules of those alone whose next slot is not the one that follows: most are not among them.
    """
    followed = sf.col("to_slot_ms").isNotNull()
    gap = sf.col("next_ms").isNotNull() & sf.coalesce(sf.col("to_slot_ms") > sf.col("next_ms"), ~followed)
    nothing = {"missed": sf.lit(0), "skipped": sf.lit(0), "skipped_ms": sf.lit(None), "ends_ms": sf.lit(None)}
    closed = found.filter(~gap).withColumns({name: column.cast("long") for name, column in nothing.items()})
    said = _weigh("rule", "next_ms", "to_slot_ms", "to_due_ms", "to_ms")
    opened = found.filter(gap).withColumn("said", said)
    opened = opened.withColumns({name: sf.col(f"said.{name}") for name in _WEIGHED})
    rows = closed.unionByName(opened.drop("said")).withColumns(
        {"is_followed": followed, "ends_ms": sf.col("ends_ms") - AHEAD_MS}
    )
    return rows.select(*CHAINED.names)


def weigh(
    rule: str, next_ms: int, to_slot_ms: int | None, to_due_ms: int | None, to_ms: int | None
) -> tuple[int, int, int | None, int | None]:
    """Return slots missed and skipped, the first that was skipped, and from when on nothing need follow."""
    if to_slot_ms is None or to_due_ms is None or to_ms is None:
        missed, ends_ms = behind(rule, next_ms) or (0, None)
        return missed, 0, None, ends_ms
    return (*between(rule, next_ms, Occurrence(0, to_slot_ms, to_due_ms), to_ms), None)


# Not by Arrow, which asks for pandas.
_weigh: Final = sf.udf(weigh, StructType([CHAINED[name] for name in _WEIGHED]), useArrow=False)
