"""The faults of what relays tell on the topic of outcomes, found beside judged rows.

What an outcome says is held against the other topics: the record or dead letter that it names, and the command that it
says a schedule was ended by. Whether an end was to be told follows from the judgement of the audit itself.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from delaytopic_api.relay import Ending
from delaytopic_audit.model.words import FOLLOWS, Kind, Outcome
from delaytopic_audit.tables.frames import is_kind, minute
from delaytopic_audit.tables.schemas import JUDGED

_SOURCE: Final = ("delay_topic", "partition", "offset")
_KEY: Final = ("minute", *_SOURCE)
_ENDED_AT: Final = ("append_ms", "topic", "at_partition", "at_offset")
_OF_TELLING: Final = ("outcomes", "untold", "untrue")


def held_against_outcomes(
    judged: DataFrame, records: DataFrame, withdrawn: DataFrame, commands: DataFrame
) -> DataFrame:
    """Return judged rows, and those that only an outcome speaks of, with what is wrong with outcomes.

    `records` are the rows that were judged, with the rules of their DelayTopic beside them; `commands` are all.
    """
    ends = withdrawn.select(*_KEY, "by", "by_offset", "withdrawn_ms")
    denials = commands.filter(is_kind(Kind.TOLD)).select(
        "delay_topic", "partition", sf.col("offset").alias("by_offset")
    )
    found = (
        _by_source(records, commands)
        .join(ends, [*_KEY], "left")
        .join(
            denials.distinct().withColumn("is_denied", sf.lit(True)), ["delay_topic", "partition", "by_offset"], "left"
        )
    )
    both = judged.drop(*_OF_TELLING).join(found, [*_KEY], "outer")
    held = both.filter(sf.col("outcome").isNotNull() | (sf.size("said") > 0)).withColumns(
        {"is_untold": _is_untold(), "untrue": _untrue(), "is_recent": _is_recent()}
    )
    wrong = sf.col("is_untold") | sf.col("untrue").isNotNull()
    nothing = {"copies": sf.lit(0).cast("long"), "early": sf.lit(False), "unwanted": sf.lit(False)}
    return held.withColumns(
        {
            "deadline_ms": sf.coalesce("deadline_ms", "told_deadline_ms"),
            **{name: sf.coalesce(name, default) for name, default in nothing.items()},
            "outcomes": sf.coalesce(sf.size("said"), sf.lit(0)).cast("long"),
            "untold": sf.col("is_untold") & ~sf.col("is_recent"),
            "untrue": sf.when(~sf.col("is_recent"), sf.col("untrue")),
            "awaited": sf.coalesce("awaited", sf.lit(False)) | (sf.col("is_recent") & wrong),
        }
    ).select(*JUDGED.names)


def _by_source(records: DataFrame, commands: DataFrame) -> DataFrame:
    """Return a row for each source record of DelayTopics that tell, with all that is said of it, and its arrivals."""
    rows, told = records.filter(sf.size("telling") > 0), is_kind(Kind.TOLD)
    by = commands.filter(~told).select(
        *("delay_topic", "partition", sf.col("offset").alias("at_offset")),
        *(sf.col("kind").alias("by_kind"), sf.col("id_hash").alias("by_hash")),
    )
    said = rows.filter(told).join(by, ["delay_topic", "partition", "at_offset"], "left")
    others = rows.filter(~told).withColumns(
        {"by_kind": sf.lit(None).cast("byte"), "by_hash": sf.lit(None).cast("long")}
    )
    asked = is_kind(Kind.SCHEDULE, Kind.REJECT, Kind.RULE)
    arrived = is_kind(Kind.DELIVERED, Kind.DEAD_LETTER)
    grouped = others.unionByName(said).groupBy(minute(), *_SOURCE)
    return grouped.agg(
        sf.collect_list(sf.when(told, sf.struct(*_ENDED_AT, "reason", "by_kind", "by_hash"))).alias("said"),
        sf.collect_list(sf.when(arrived, sf.struct(*_ENDED_AT, "kind"))).alias("arrivals"),
        sf.max("deadline_ms").alias("told_deadline_ms"),
        sf.bool_or(asked).alias("is_asked"),
        sf.max(sf.when(asked, sf.col("id_hash"))).alias("asked_hash"),
        # Commands behind what an occurrence follows may end it before it is read.
        sf.max(sf.when(asked, sf.coalesce("at_offset", "offset"))).alias("place"),
        sf.bool_or(is_kind(Kind.RESOLVED)).alias("is_resolved"),
        sf.bool_or(is_kind(Kind.SCHEDULE) & sf.coalesce(sf.col("reason") == FOLLOWS, sf.lit(False))).alias("follows"),
        *(sf.any_value(name).alias(name) for name in ("tells_once", "telling", "settled_ms")),
    )


def _is_untold() -> Column:
    """Return the condition that a record ended, in a way and at a time that was to be told, and that nothing is told.

    A record that recurs, and that occurrences follow, has not ended. Where nothing is transactional an occurrence may
    be in the source twice, and only one of them is told to be withdrawn.
    """
    outcome = sf.col("outcome")
    arrived = outcome.isin(str(Outcome.DELIVERED), str(Outcome.MISDIRECTED))
    withdrawn = ~sf.col("is_resolved") & (sf.col("tells_once") | ~sf.col("follows"))
    ending = (
        sf.when(arrived, str(Ending.DELIVERED))
        .when(outcome == str(Outcome.DEAD_LETTERED), str(Ending.DEAD_LETTERED))
        .when(withdrawn & (outcome == str(Outcome.CANCELLED)), str(Ending.CANCELLED))
        .when(withdrawn & (outcome == str(Outcome.REPLACED)), str(Ending.REPLACED))
    )
    ended_ms = sf.when(sf.size("arrivals") > 0, sf.col("append_ms")).otherwise(sf.col("withdrawn_ms"))
    is_due = ended_ms >= sf.try_element_at("telling", ending)
    return sf.coalesce((sf.size("said") == 0) & is_due, sf.lit(False))


def _untrue() -> Column:
    """Return the word of an outcome that is not true; null without any."""
    words = sf.transform(sf.filter("said", lambda each: ~_is_true(each)), lambda each: each["reason"])
    # Whoever cancelled what was pending until then was told that nothing was.
    denied = (sf.col("outcome") == str(Outcome.CANCELLED)) & (sf.col("by") == int(Kind.CANCEL)) & sf.col("is_denied")
    return sf.coalesce(sf.array_min(words), sf.when(denied, str(Ending.NOT_PENDING)))


def _is_true(said: Column) -> Column:
    word, kind = said["reason"], said["by_kind"]
    nowhere = said["at_offset"].isNull()

    def there(arrival: Column) -> Column:
        return (arrival["at_partition"] == said["at_partition"]) & (arrival["at_offset"] == said["at_offset"])

    delivered = sf.exists(
        "arrivals",
        lambda each: (
            (each["kind"] == int(Kind.DELIVERED)) & (nowhere | ((each["topic"] == said["topic"]) & there(each)))
        ),
    )
    letter = sf.exists("arrivals", lambda each: (each["kind"] == int(Kind.DEAD_LETTER)) & (nowhere | there(each)))
    # Without transactions a schedule may be withdrawn whose delivery nobody remembers.
    arrived = sf.exists("arrivals", lambda each: each["kind"] == int(Kind.DELIVERED)) & sf.col("tells_once")
    of_its_id = (said["by_hash"] == sf.col("asked_hash")) & (said["at_partition"] == sf.col("partition"))
    ended_by = of_its_id & (said["at_offset"] > sf.col("place")) & ~arrived
    is_true = (
        sf.when(word == str(Ending.DELIVERED), delivered)
        .when(word == str(Ending.DEAD_LETTERED), letter)
        .when(word == str(Ending.CANCELLED), ended_by & (kind == int(Kind.CANCEL)))
        .when(word == str(Ending.REPLACED), ended_by & kind.isin(int(Kind.SCHEDULE), int(Kind.RULE)))
    )
    return sf.coalesce(is_true & sf.col("is_asked"), sf.lit(False))


def _is_recent() -> Column:
    """Return the condition that something of the record is so recent that not all of it need be there to be read."""
    parts = (sf.exists(name, lambda each: each["append_ms"] > sf.col("settled_ms")) for name in ("said", "arrivals"))
    said, arrived = parts
    return sf.coalesce(said | arrived, sf.lit(False))
