"""Edge: an audit of made-up records without a Kafka, by which Java learns what an audit does: see `java_archive`.

Two runs: an hour in which all is well, and one with all that has to be joined.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.values import Guarantee, Percent
from delaytopic_slo.audit import report_of
from delaytopic_slo.ledger.ledger import Ledger
from delaytopic_slo.model.manifest import Commit, Plan, Range, Role
from delaytopic_slo.model.report import Report
from delaytopic_slo.model.rules import Rules
from delaytopic_slo.model.words import Kind
from delaytopic_slo.outputs import write_outputs
from delaytopic_slo.pipeline.ports import silent
from delaytopic_slo.pipeline.run import execute_plan
from delaytopic_slo.reading.data_source import read_shares
from delaytopic_slo.reading.decoding import Row, batch_of
from delaytopic_slo.reading.planning import Offsets, Request, TopicState, make_plan
from delaytopic_slo.runtime.session import spark_session

THIS_MODULE: Final = "delaytopic_slo.rehearsal"
"""Whichever name it runs by."""
RECORDS: Final = 500_000
PARTITIONS: Final = 2
HOUR_MS: Final = 3_600_000
BATCH_ROWS: Final = 10_000
NOW_MS: Final = 500_000 * HOUR_MS
_RULES: Final = Rules(
    lateness_ms=1_000,
    grace_ms=61_000,
    objective=Percent("99.9%"),
    window_ms=24 * HOUR_MS,
    guarantee=Guarantee.AT_LEAST_ONCE,
    retention_ms=48 * HOUR_MS,
)


def rehearse(archive: Path, records: int = RECORDS) -> list[Report]:
    """Audit twice. A Java that is started for this writes what it learned to `archive` at its end."""
    spark = spark_session(archive_output=archive)
    with tempfile.TemporaryDirectory(prefix="delaytopic-rehearsal-") as folder:
        ledger = Ledger(spark, folder, "rehearsal/hour")
        return [_audit(spark, ledger, records, folder), _audit(spark, ledger, records // 50, folder)]


def share_of(_options: dict[str, str], share: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one range."""
    piece = Range.model_validate_json(share)
    for start in range(piece.start, piece.end, BATCH_ROWS):
        offsets = range(start, min(start + BATCH_ROWS, piece.end))
        yield batch_of([row for offset in offsets for row in _rows(piece, offset, odd=piece.start > 0)])


def _audit(spark: SparkSession, ledger: Ledger, records: int, folder: str) -> Report:
    last = ledger.last_commit()
    plan = _plan(records, last)
    ledger.write_plan(plan)

    def read(ranges: list[Range]) -> DataFrame:
        return read_shares(spark, THIS_MODULE, {}, [json.dumps(piece.to_document()) for piece in ranges])

    commit = execute_plan(plan, ledger, last, read, silent)
    report = report_of(ledger, commit, 3 * HOUR_MS, NOW_MS)
    write_outputs(report, Path(folder) / "report")
    ledger.close_plan(plan)
    return report


def _plan(records: int, last: Commit | None) -> Plan:
    request = Request("rehearsal/hour", "source", "target", "source.dlq", _RULES, NOW_MS, trusts_any_clock=True)
    read = last.plan.ranges[0].end if last is not None else 0
    offsets = dict.fromkeys(range(PARTITIONS), Offsets(0, 0, read + records // PARTITIONS))
    states = {topic: TopicState(topic, topic, offsets) for topic in ("target", "source.dlq", "source")}
    return make_plan(request, states, last)


def _rows(piece: Range, offset: int, *, odd: bool) -> Iterator[Row]:
    """Yield a record's rows. Some odd records are withdrawn, overdue, lost, doubled or refused."""
    due_ms = NOW_MS - 2 * HOUR_MS + offset * 7_200 // 1_000 % HOUR_MS
    fate = offset % 50 if odd else -1
    at = (piece.partition, offset)
    asked_ms = due_ms + 1 if fate == 0 else due_ms - 600_000
    if piece.role is Role.SOURCE:
        id_hash = {5: offset, 6: offset - 1, 7: offset, 8: offset - 1}.get(fate)
        if fate == 6:
            yield (int(Kind.CANCEL), *at, None, asked_ms, True, None, id_hash, None, None, None, None)
        elif fate == 2:
            yield (int(Kind.REJECT), *at, None, asked_ms, True, None, None, None, None, None, None)
        else:
            yield (int(Kind.SCHEDULE), *at, due_ms, asked_ms, True, None, id_hash, "target", None, None, None)
    elif piece.role is Role.TARGET:
        for _ in range({2: 0, 3: 0, 4: 2, 5: 0, 6: 0, 7: 0}.get(fate, 1)):
            place = ("target", piece.partition, offset, None)
            yield (int(Kind.DELIVERED), *at, due_ms, due_ms + offset % 97, True, due_ms, None, *place)
    elif fate == 2:
        yield (int(Kind.DEAD_LETTER), *at, None, due_ms, True, due_ms, None, None, *at, "InvalidHeader")


if __name__ == "__main__":
    rehearse(Path(sys.argv[1]))
