"""Which schedules a later command of their id withdrew, as far as the topics tell."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from delaytopic_slo.model.schemas import WITHDRAWALS
from delaytopic_slo.tables.frames import minute

_ID = ("partition", "id_hash")


def withdrawals(schedules: DataFrame, commands: DataFrame, grace_ms: int) -> DataFrame:
    """The schedules whose next command came before they must have been delivered.

    A command that came `grace_ms` or more before the deadline has to take effect (`certain`), one that came more than
    `grace_ms` after it ends nothing; in between it races with the delivery.
    """
    named = schedules.filter(sf.col("id_hash").isNotNull()).select(*_ID, "offset", "deadline_ms")
    of_these = commands.join(named.select(*_ID).distinct(), list(_ID), "left_semi")
    by_offset = Window.partitionBy(*_ID).orderBy("offset")
    following = of_these.select(
        *_ID,
        "offset",
        sf.lead("kind").over(by_offset).alias("by"),
        sf.lead("append_ms").over(by_offset).alias("withdrawn_ms"),
    )
    found = named.join(following, [*_ID, "offset"])
    in_time = sf.col("withdrawn_ms") <= sf.col("deadline_ms") + grace_ms
    certain = (sf.col("withdrawn_ms") + grace_ms <= sf.col("deadline_ms")).alias("certain")
    return found.filter(in_time).select(minute(), "partition", "offset", "by", certain).select(*WITHDRAWALS.names)
