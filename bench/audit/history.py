"""`python -m bench.audit.history HOURS RECORDS FOLDER`: an hour's run and its report after so many hours; prints JSON.

No Kafka: records are made up by the tasks that would read them. The hours before are written as
the parts that hourly runs leave, and as the runs with schedules that have an id and wait.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from bench.audit.made_up import HOUR_MS, NOW_MS, THIS_MODULE
from bench.audit.watch import family_bytes_read, family_cpu_seconds
from delaytopic_api.values import Guarantee, Percent
from delaytopic_audit.audit import reports_of
from delaytopic_audit.ledger.compaction import last_to_compact, put_together
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.ledger.parts import next_parts
from delaytopic_audit.model.manifest import Asked, Commit, Part, Range, Run, RunPlan
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.model.words import MINUTE_MS, Kind
from delaytopic_audit.pipeline.ports import silent
from delaytopic_audit.pipeline.run import execute_plan
from delaytopic_audit.reading.data_source import read_shares
from delaytopic_audit.reading.planning import Offsets, Request, TopicState, make_plan
from delaytopic_audit.runtime.session import spark_session
from delaytopic_audit.tables.schemas import COMMANDS, PARTS, RECORDS

_Done = TypeVar("_Done")
NAME = "bench/history"
PARTITIONS = 12
READ = 2
BUCKETS = 60
WAITING = 1_000
"""Schedules with an id that each run before saw, and that wait for years."""
FAR_MINUTE = NOW_MS // MINUTE_MS + 1_000_000
RULES = Rules(
    lateness_ms=1_000,
    grace_ms=61_000,
    objective=Percent("99.9%"),
    window_ms=720 * HOUR_MS,
    guarantee=Guarantee.AT_LEAST_ONCE,
    retention_ms=744 * HOUR_MS,
)


def main(hours: int, records: int, folder: str) -> None:
    """Write the hours, then run and report; a first run and report of nothing warm Java up."""
    spark = spark_session(memory="1g")
    ledger = Ledger(spark, folder)
    first = hours * WAITING
    before = _run(spark, ledger, None, NOW_MS - 2 * HOUR_MS, first, first)
    reports_of(ledger, before, [NAME], HOUR_MS, NOW_MS)
    parts, runs = _history(spark, ledger, before.states[0].closed_minute, hours), _waiting(spark, ledger, hours)
    before = before.model_copy(update={"parts": parts, "runs": [*runs, *before.runs]})
    commit, of_run = _measured(lambda: _run(spark, ledger, before, NOW_MS, first, first + records // READ))
    # The hour of the records ended an hour before the run.
    reports, of_report = _measured(lambda: reports_of(ledger, commit, [NAME], (hours + 2) * HOUR_MS, NOW_MS))
    counts = reports[NAME].counts
    assert counts is not None
    ledger_has = {"parts": len(commit.parts), "runs": len(commit.runs), "asked": counts.asked}
    print(json.dumps({"run": of_run, "report": of_report, **ledger_has}))


def _measured(work: Callable[[], _Done]) -> tuple[_Done, dict[str, float]]:
    """Return what was done, and what it cost in this process and its children."""
    root = os.getpid()
    started, cpu_s, already_read = time.monotonic(), family_cpu_seconds(root), family_bytes_read(root)
    done = work()
    seconds, cpu_s = time.monotonic() - started, family_cpu_seconds(root) - cpu_s
    read = family_bytes_read(root) - already_read
    return done, {"seconds": round(seconds, 1), "cpuSeconds": round(cpu_s, 1), "bytesRead": read}


def _run(spark: SparkSession, ledger: Ledger, last: Commit | None, now_ms: int, start: int, end: int) -> Commit:
    """Judge the records of each source partition from `start`, which is where the last run ended, to `end`."""
    request = Request(NAME, "source", "target", "source.dlq", RULES, now_ms, trusts_any_clock=True)
    before = last.states[0] if last is not None else None
    offsets = dict.fromkeys(range(READ), Offsets(start, start, end))
    states = {topic: TopicState(topic, topic, offsets) for topic in ("target", "source.dlq", "source")}

    def read(ranges: Mapping[int, Sequence[Range]]) -> DataFrame:
        pieces = [piece for its in ranges.values() for piece in its]
        return read_shares(spark, THIS_MODULE, {}, [json.dumps(piece.to_document()) for piece in pieces])

    plan = RunPlan(sequence=last.sequence + 1 if last is not None else 1, plans=[make_plan(request, states, before)])
    return execute_plan(plan, ledger, last, read, silent)


def _history(spark: SparkSession, ledger: Ledger, end: int, hours: int) -> list[Part]:
    """Write the parts of so many hourly runs, as they are when the last of them has committed."""
    parts: list[Part] = []
    for start in range(end - hours * 60, end, 60):
        parts, _, new = next_parts(parts, 0, range(start, start + 60), [])
        assert new is not None
        folder = f"runs/00000001-h/{new.start}-{new.end}"
        parts.append(Part(folder=folder, start=new.start, end=new.end, runs=new.runs))
    for part in parts:
        for table, rows in _tables(spark, part).items():
            ledger.write(part.folder, table, rows)
    return parts


def _waiting(spark: SparkSession, ledger: Ledger, hours: int) -> list[Run]:
    """Write the runs of so many hours, as they are when the last of them has committed: each saw some schedules."""
    runs: list[Run] = []
    for hour in range(hours):
        if count := last_to_compact(runs):
            runs = [*runs[:-count], put_together(runs[-count:], f"runs/00000001-h/earlier-{hour}")]
        runs.append(
            Run(
                sequence=1,
                folder=f"runs/00000001-h/{hour}",
                first_minute=FAR_MINUTE,
                last_minute=FAR_MINUTE,
                commands=WAITING,
                overdue=0,
                asks={1: [Asked(0, hour * WAITING, (hour + 1) * WAITING)]},
                rows=WAITING,
            )
        )
    for place, run in enumerate(runs):
        number = sf.col("id")
        known = {
            "deadline_ms": sf.lit(FAR_MINUTE * MINUTE_MS),
            "due_ms": sf.lit(FAR_MINUTE * MINUTE_MS),
            "delay_topic": sf.lit(1),
            "kind": sf.lit(int(Kind.SCHEDULE)),
            "id_hash": sf.xxhash64(number),
            "offset": number,
        }
        records, commands = (
            spark.range(run.rows).select(
                *(known.get(each.name, sf.lit(nothing)).cast(each.dataType).alias(each.name) for each in schema.fields)
            )
            for schema, nothing in ((RECORDS, 0), (COMMANDS, None))
        )
        ledger.write(run.folder, "records", records)
        runs[place] = run.model_copy(update={"buckets": ledger.write_commands(run.folder, commands, run.commands)})
    return runs


def _tables(spark: SparkSession, part: Part) -> dict[str, DataFrame]:
    def rows(table: str, each: int, *numbers: str) -> DataFrame:
        frame = spark.range((part.end - part.start) * each)
        known = {
            "delay_topic": sf.lit(1),
            "minute": part.start + sf.floor(sf.col("id") / each),
            "partition": sf.col("id") % each,
            "bucket": sf.col("id") % each * 7,
            "within": sf.lit(None),
            **dict.fromkeys(numbers, sf.lit(1_000)),
        }
        fields = PARTS[table].fields
        return frame.select(*(known.get(f.name, sf.lit(0)).cast(f.dataType).alias(f.name) for f in fields))

    return {
        "verdicts": rows("verdicts", PARTITIONS, "asked", "delivered", "on_time"),
        "histogram": rows("histogram", BUCKETS, "records"),
        "findings": rows("findings", 1).filter(sf.lit(False)),
    }


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
