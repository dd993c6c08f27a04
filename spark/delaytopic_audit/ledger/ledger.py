"""Edge: the ledger of a class, or of any DelayTopics that are audited together: plans, tables and commits, on any file
system that Spark takes.

    plans/<run>.json          what a run is to read; there until its outputs are written
    runs/<run>-<attempt>/...  its tables, of no meaning without the commit
    commits/<run>.json        that they count

A run that is killed leaves a plan, and perhaps tables. The next one carries out the same plan, with tables of its own.
Nobody has to know if the other is still alive: of any number of attempts at a run, the first to commit counts.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from delaytopic_audit.errors import LedgerError, OvertakenError
from delaytopic_audit.ledger.buckets import bucket_count
from delaytopic_audit.ledger.files import Files
from delaytopic_audit.model.manifest import Buckets, Commit, RunPlan
from delaytopic_audit.tables.frames import divided

SORTING = ("deadline_ms", "delay_topic", "kind", "partition", "offset", "at_partition", "at_offset")
"""The order of records: by deadline, and the same whatever tasks it came from."""
ROWS_PER_GROUP = 100_000
ROWS_PER_FILE = 1_000_000
RECENT_COMMITS = 3
_BUCKET = "bucket="
_DIFFERING = ("deadline_ms", "offset", "due_ms", "append_ms", "sent_ms", "id_hash", "at_offset")
_NO_DICTIONARIES = {f"parquet.enable.dictionary#{name}": "false" for name in _DIFFERING}
_STAGED_FILE: dict[str, str] = {"compression": "snappy", **_NO_DICTIONARIES}
_SORTED_FILE: dict[str, str] = {
    "parquet.block.row.count.limit": str(ROWS_PER_GROUP),
    # Numbers that hardly repeat: as differences they are smaller than by a dictionary, and sooner written.
    "parquet.writer.version": "PARQUET_2_0",
    **_NO_DICTIONARIES,
}
Document = TypeVar("Document", RunPlan, Commit)


class Ledger:
    """One ledger."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        """`root` is its folder or URL.

        Raises LedgerError for a folder of this machine with executors on others.
        """
        require_shared(root, str(spark.sparkContext.master))
        self._spark = spark
        self._attempts: set[str] = set()
        self._files = Files(spark, root)

    @property
    def place(self) -> str:
        """The ledger's path or URL."""
        return self._files.place("")

    # -- plans and commits

    def last_commit(self) -> Commit | None:
        """Return the last run that counts."""
        names = self._documents("commits")
        return self._commit(names[-1]) if names else None

    def open_plan(self) -> RunPlan | None:
        """Return the plan of a run that did not come to its end."""
        names = self._documents("plans")
        if not names:
            return None
        return _parsed(RunPlan, self._files.read(f"plans/{names[-1]}"), names[-1])

    def write_plan(self, plan: RunPlan) -> None:
        """Write the plan before anything is read; raises OvertakenError when another run was quicker."""
        self._files.create(f"plans/{_name(plan.sequence)}.json", _text(plan))

    def close_plan(self, plan: RunPlan) -> None:
        """Remove the plan after the outputs are written."""
        self._files.delete(f"plans/{_name(plan.sequence)}.json")

    def commit(self, commit: Commit) -> None:
        """Make the run count; raises OvertakenError when another one came first."""
        name = f"{_name(commit.sequence)}.json"
        self._files.create(f"commits/{name}", _text(commit))
        # Whoever comes so late that the commit of the run before was removed already finds no file in the way.
        if self._documents("commits")[-1] > name:
            self._files.delete(f"commits/{name}")
            raise OvertakenError(f"{self.place}: other runs came after run {commit.sequence} already")

    # -- tables

    def begin(self, plan: RunPlan) -> str:
        """Return a folder for this attempt at a run."""
        folder = f"runs/{_name(plan.sequence)}-{secrets.token_hex(4)}"
        self._attempts.add(folder)
        return folder

    def has_written(self, commit: Commit) -> bool:
        """Tell whether a commit is of this object, and not of another audit."""
        return commit.folder in self._attempts

    def write(self, folder: str, table: str, rows: DataFrame) -> DataFrame:
        """Write a table of a run, in files as large as Spark advises, and return it as it was written."""
        place = self._files.place(f"{folder}/{table}")
        rows.hint("rebalance").write.mode("overwrite").parquet(place)
        return self._spark.read.schema(rows.schema).parquet(place)

    def stage(self, folder: str, table: str, rows: DataFrame) -> DataFrame:
        """Write what this run alone reads, in a file for each task, as quickly as may be."""
        place = self._files.place(f"{folder}/{table}")
        rows.write.options(**_STAGED_FILE).mode("overwrite").parquet(place)
        return self._spark.read.schema(rows.schema).parquet(place)

    def write_sorted(self, folder: str, table: str, rows: DataFrame, expected: int) -> DataFrame:
        """Write rows in the order of deadlines, in groups small enough to skip those of other times.

        About so many rows are `expected`: files become more with them, not larger.
        """
        place = self._files.place(f"{folder}/{table}")
        files = -(-expected // ROWS_PER_FILE)
        parts = rows.repartitionByRange(files, "deadline_ms") if files > 1 else rows.repartition(1)
        ordered = parts.sortWithinPartitions(*SORTING)
        ordered.write.options(**_SORTED_FILE).mode("overwrite").parquet(place)
        return self._spark.read.schema(rows.schema).parquet(place)

    def write_commands(self, folder: str, rows: DataFrame, expected: int) -> Buckets:
        """Write a run's commands by bucket of their ids, and return the buckets that have any.

        About so many rows are `expected`: buckets become more with them.
        """
        table, of = f"{folder}/commands", bucket_count(expected)
        by = ("recurs", "bucket")
        bucketed = divided(rows, of).hint("rebalance", *by)
        bucketed.write.partitionBy(*by).mode("overwrite").parquet(self._files.place(table))
        commands, chains = (self._buckets(f"{table}/recurs={recurs}") for recurs in ("false", "true"))
        return Buckets(of=of, commands=commands, chains=chains)

    def _buckets(self, folder: str) -> list[int]:
        names = self._files.names(folder)
        return sorted(int(name.removeprefix(_BUCKET)) for name in names if name.startswith(_BUCKET))

    def read(self, folders: Iterable[str], table: str, schema: StructType) -> DataFrame:
        """Return a table of several runs, as one; empty for no run."""
        return self.read_folders([f"{folder}/{table}" for folder in folders], schema)

    def read_folders(self, folders: Sequence[str], schema: StructType) -> DataFrame:
        """Return the rows in some folders, relative to the ledger, as one table; empty for no folder."""
        if not folders:
            return self._empty(schema)
        return self._spark.read.schema(schema).parquet(*map(self._files.place, folders))

    def table_of(self, schema: StructType, rows: Iterable[Mapping[str, object]]) -> DataFrame:
        """Return a small table of these rows, which Spark's planner knows as a list of values."""
        # From Arrow's columns, as a list of rows would go through a Python worker.
        return self._spark.createDataFrame(pa.Table.from_pylist(list(rows), to_arrow_schema(schema)), schema)

    def _empty(self, schema: StructType) -> DataFrame:
        """Return no rows in a way that Spark's planner knows: a list of none would ask a Python worker."""
        nothing = self._spark.range(0).filter(sf.lit(False))
        return nothing.select(*(sf.lit(None).cast(field.dataType).alias(field.name) for field in schema))

    def drop(self, folder: str, table: str) -> None:
        """Remove a table of a run."""
        self._files.delete(f"{folder}/{table}")

    def sweep(self, last: Commit) -> None:
        """Remove what no reader of the last commit needs.

        What an earlier commit counted, and this one does not, goes before that commit does: a sweep that was killed is
        made up for by the next. What later runs write is theirs.
        """
        names, living, sequence = self._documents("commits"), last.folders, _name(last.sequence)
        for name in names[:-1]:
            for table in sorted(self._commit(name).tables - last.tables):
                self._files.delete(table)
        for name in self._files.names("runs"):
            if name.partition("-")[0] <= sequence and f"runs/{name}" not in living:
                self._files.delete(f"runs/{name}")
        for name in names[:-RECENT_COMMITS]:
            self._files.delete(f"commits/{name}")

    def _commit(self, name: str) -> Commit:
        return _parsed(Commit, self._files.read(f"commits/{name}"), name)

    def _documents(self, folder: str) -> list[str]:
        return [name for name in self._files.names(folder) if name.endswith(".json") and not name.startswith(".")]


def require_shared(root: str, master: str) -> None:
    """Refuse a ledger of which each executor would write its part to its own machine, and this one read what it has."""
    if not master.startswith("local") and ":/" not in root:
        raise LedgerError(
            f"{root} is a folder of this machine, which executors of {master} do not have: give the URL of a store, or"
            " file:///... of a folder that all of these machines have mounted"
        )


def _name(sequence: int) -> str:
    return f"{sequence:08d}"


def _text(document: RunPlan | Commit) -> str:
    return document.model_dump_json(by_alias=True, exclude_none=True) + "\n"


def _parsed(kind: type[Document], text: str, name: str) -> Document:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise LedgerError(
            f"{name} in the ledger is not a {kind.__name__} of this version: begin a new one with another --ledger."
            f" {error}"
        ) from error
