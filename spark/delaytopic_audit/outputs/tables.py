"""Publishes what a ledger holds for others: tables in Delta's format, and of `verdicts` a page of all DelayTopics.

`minutes` and `findings` have the files of the ledger's parts that count, under the parts' names. So what a table lacks
is seen by its paths: a run that was killed, and one that did not come to publish, are made up for by the next one.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from delaytopic_audit.errors import AuditError, PublishingError, SettingsError
from delaytopic_audit.ledger.ledger import Ledger, require_shared
from delaytopic_audit.model.manifest import Commit, Part, State
from delaytopic_audit.model.report import Report, Verdict
from delaytopic_audit.outputs.delta import OvertakenByAnother, Place, Table
from delaytopic_audit.report.html.fleet import Standing, fleet_page
from delaytopic_audit.tables.published import PUBLISHED, published
from delaytopic_audit.tables.schemas import COUNTS, NAMES, PARTS

PAGE: Final = "fleet.html"
ATTEMPTS: Final = 8
"""The number of times that a table is read again when another audit was quicker."""
_PART: Final = "part"
_PATH: Final = re.compile(r"(?P<numbers>\d+)-[0-9a-f]{8}/part=(?P<part>[^/]+)/")
_TIME: Final = pa.timestamp("us", "UTC")
_OBJECTIVE: Final = pa.struct(
    {
        "name": pa.string(),
        "objective": pa.string(),
        "attainment": pa.string(),
        "good": pa.int64(),
        "bad": pa.int64(),
        "verdict": pa.string(),
    }
)
_LATENESS: Final = {"p50_ms": pa.float64(), "p99_ms": pa.float64(), "p999_ms": pa.float64(), "max_ms": pa.int64()}
VERDICTS: Final = pa.schema(
    {
        "delay_topic": pa.string(),
        "verdict": pa.string(),
        "sentence": pa.string(),
        "reasons": pa.list_(pa.string()),
        "missed": pa.list_(pa.string()),
        "generated": _TIME,
        "run": pa.int64(),
        "source": pa.string(),
        "target": pa.string(),
        "window_from": _TIME,
        "window_to": _TIME,
        "objectives": pa.list_(_OBJECTIVE),
        **dict.fromkeys(COUNTS, pa.int64()),
        **_LATENESS,
        "budget_window": pa.string(),
        "budget_allowed": pa.float64(),
        "budget_spent": pa.int64(),
        "budget_left": pa.float64(),
        "budget_exhausted_at": _TIME,
    }
)
"""One row for each DelayTopic: what the last run that said something of it has said. `budget_left` is a share."""


class _File(NamedTuple):
    """A file of a published table."""

    path: str
    part: str
    """The part of the ledger that its rows are of."""
    numbers: int
    """The greatest number that a DelayTopic had when it was written."""


def publish_tables(
    spark: SparkSession,
    ledger: Ledger,
    results: Mapping[str, Report | AuditError],
    place: str,
    *,
    reports: str,
    now_ms: int,
) -> None:
    """Bring the tables in `place` up to the ledger's last commit, and to the verdicts of this run.

    `reports` is the place of reports, which the page has links to. Each table changes at once, by a commit of its own,
    and `verdicts` is the last. Raises SettingsError, LedgerError, and PublishingError when a table could not be
    written: the next run makes up for it.
    """
    require_shared(place, str(spark.sparkContext.master))
    tables = Place(spark, place)
    try:
        for name in PUBLISHED:
            _insist(partial(_publish_parts, ledger, tables, name))
        _insist(partial(_publish_verdicts, ledger, tables, results, way_to_reports(place, reports), now_ms))
    except (PySparkException, Py4JJavaError) as error:
        raise PublishingError(f"--tables: {place} cannot be written: {str(error).partition(chr(10))[0]}") from error


def _insist(attempt: Callable[[], None]) -> None:
    """Try again, from reading the table on, while other audits are quicker."""
    for left in reversed(range(ATTEMPTS)):
        try:
            attempt()
        except OvertakenByAnother as error:
            if not left:
                raise PublishingError(f"--tables: other audits write all the time: {error}") from error
        else:
            break


def _publish_parts(ledger: Ledger, tables: Place, name: str) -> None:
    of_ledger, schema = PUBLISHED[name]
    table = _own(tables.table(name, to_arrow_schema(schema, timezone="UTC"), _description(ledger)), ledger)
    # After the table was opened: whatever is published by now, this commit or one before it has counted.
    commit = ledger.last_commit()
    if commit is None:
        return
    files = [_file_of(path) for path in table.paths()]
    parts, renewed = {_word_of(part): part for part in commit.parts}, _last_begun_anew(commit)
    stay = {file.part for file in files if file.part in parts and file.numbers >= renewed}
    rows = _rows_of(ledger, commit, {word: part for word, part in parts.items() if word not in stay}, of_ledger)
    added = table.write(str(commit.numbers), rows, _PART) if rows is not None else []
    removed = [file.path for file in files if file.part not in stay]
    if added or removed:
        table.commit(commit.sequence, added, removed)
    if removed:
        table.vacuum()


def _rows_of(ledger: Ledger, commit: Commit, parts: Mapping[str, Part], table: str) -> DataFrame | None:
    """Return what others see of these parts, by the word for each; None without any."""
    names = ledger.table_of(NAMES, [_name_row(state) for state in commit.states])
    found = [
        published(ledger.read([part.folder], table, PARTS[table]).withColumn(_PART, sf.lit(word)), names)
        for word, part in parts.items()
    ]
    return reduce(DataFrame.unionByName, found) if found else None


def _name_row(state: State) -> dict[str, Any]:
    return {"delay_topic": state.plan.number, "name": state.plan.delay_topic, "floor": state.floor_minute}


def _last_begun_anew(commit: Commit) -> int:
    """Return the greatest number of a DelayTopic whose audit began anew; 0 without any.

    Files that are older have rows of its former number, which count no more.
    """
    return max((state.plan.number for state in commit.states if state.plan.epoch > 1), default=0)


def _word_of(part: Part) -> str:
    """Return a part's folder as one word."""
    return part.folder.removeprefix("runs/").replace("/", "-")


def _file_of(path: str) -> _File:
    found = _PATH.match(path)
    # What others have rewritten, as by OPTIMIZE, is of no part any more: it goes, and its parts are published again.
    return _File(path, found["part"], int(found["numbers"])) if found is not None else _File(path, "", 0)


def _description(ledger: Ledger) -> str:
    return f"Of the audits' ledger {ledger.place}"


def _own(table: Table, ledger: Ledger) -> Table:
    """Return a table that is of this ledger; raises SettingsError for another one's."""
    if table.description != _description(ledger):
        raise SettingsError(
            f"--tables: {table.place} is not of this ledger: {table.description or 'nobody says whose it is'}."
            " Give each ledger a place of its own"
        )
    return table


def _publish_verdicts(
    ledger: Ledger, tables: Place, results: Mapping[str, Report | AuditError], reports: str | None, now_ms: int
) -> None:
    table = _own(tables.table("verdicts", VERDICTS, _description(ledger)), ledger)
    commit = ledger.last_commit()
    known = {state.plan.delay_topic for state in commit.states} if commit is not None else set()
    rows = {row["delay_topic"]: row for row in table.rows() if row["delay_topic"] in known | set(results)}
    for name, result in results.items():
        if isinstance(result, AuditError):
            continue
        row = verdict_row(result)
        if name not in rows or rows[name]["generated"] <= row["generated"]:
            rows[name] = row
    table.replace(now_ms, [rows[name] for name in sorted(rows)])
    table.vacuum()
    tables.put(PAGE, fleet_page([_standing(row) for row in rows.values()], reports, now_ms))


def _standing(row: Mapping[str, Any]) -> Standing:
    return Standing(
        delay_topic=row["delay_topic"],
        verdict=Verdict(row["verdict"]),
        sentence=row["sentence"],
        judged_until_ms=_milliseconds(row["window_to"]),
        reasons=row["reasons"],
        budget_left=row["budget_left"],
        budget_window=row["budget_window"],
        budget_spent=row["budget_spent"],
        budget_allowed=row["budget_allowed"],
        exhausted_ms=_milliseconds(row["budget_exhausted_at"]),
        asked=row["asked"],
        p99_ms=row["p99_ms"],
    )


def way_to_reports(tables: str, reports: str) -> str | None:
    """Return the way from one place to another, as a link has it; None where they are in different stores."""
    (store, begin), (other, end) = _split(tables), _split(reports)
    return quote(posixpath.relpath(end, begin)) if store == other else None


def _split(place: str) -> tuple[str, str]:
    """Return the store of a place, and its path there."""
    parts = urlsplit(place)
    if parts.scheme in ("", "file"):
        return "file", os.path.abspath(unquote(parts.path) if parts.scheme else place)
    return f"{parts.scheme}://{parts.netloc}", parts.path


def verdict_row(report: Report) -> dict[str, Any]:
    """Return the row of `verdicts` that a report comes to."""
    window, late, budget, counts = report.window, report.lateness, report.budget, report.counts
    spent_ms = report.exhaustion.at_ms if report.exhaustion is not None else None
    return {
        "delay_topic": report.delay_topic,
        "verdict": str(report.verdict),
        "sentence": report.sentence,
        "reasons": report.reasons,
        "missed": [each.name for each in report.objectives if each.verdict is Verdict.MISSED],
        "generated": _time(report.generated_at_ms),
        "run": report.reading.run if report.reading is not None else None,
        "source": report.source,
        "target": report.target,
        "window_from": _time(window.from_ms) if window is not None else None,
        "window_to": _time(window.to_ms) if window is not None else None,
        "objectives": [each.model_dump(include=set(_OBJECTIVE.names)) for each in report.objectives],
        **{name: getattr(counts, name) if counts is not None else None for name in COUNTS},
        **{name: getattr(late, name) if late is not None else None for name in _LATENESS},
        "budget_window": budget.window if budget is not None else None,
        "budget_allowed": budget.allowed if budget is not None else None,
        "budget_spent": budget.spent if budget is not None else None,
        "budget_left": budget.remaining if budget is not None else None,
        "budget_exhausted_at": _time(spent_ms) if spent_ms is not None else None,
    }


def _time(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1_000, UTC)


def _milliseconds(moment: datetime | None) -> int | None:
    return round(moment.timestamp() * 1_000) if moment is not None else None
