"""Edge: one table in Delta's format, in a folder of this machine or in S3.

Spark writes its files, and `deltalake` commits them: to Delta's log a file is added that was not there, which S3 and
folders let one of several writers do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from secrets import token_hex
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from delaytopic_audit.errors import PublishingError, SettingsError
from delaytopic_audit.ledger.files import Files

WRITER: Final = "delaytopic-audit"
"""The application that the log's transactions are of."""
_STORE: Final = "s3a"
_SKIPPED_BY: Final = ("delay_topic", "minute")
"""The columns by which readers skip files; they have no nulls."""
_TIME: Final = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"


class OvertakenByAnother(Exception):
    """The end of a commit that another writer was quicker than: the table is not as it was read."""


class Place:
    """A folder of tables, as Spark and as `deltalake` reach it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        """`root` is a folder, `file:///` or `s3a://`. Raises SettingsError for other stores."""
        scheme = urlsplit(root).scheme
        if scheme not in ("", "file", _STORE):
            raise SettingsError(
                f"--tables: {root} is neither a folder nor {_STORE}://...: nowhere else are tables safe"
            )
        self._files = Files(spark, root)
        self._is_store = scheme == _STORE
        self._options = _s3_options(self._files.setting, urlsplit(root).netloc) if self._is_store else {}

    def table(self, name: str, schema: pa.Schema, description: str) -> Table:
        """Return a table of this name as it is now, made when there is none. Raises PublishingError."""
        place = self._files.place(name)
        at = place if self._is_store else unquote(urlsplit(place).path)
        with _told(place):
            try:
                found = DeltaTable(at, storage_options=self._options)
            except TableNotFoundError:
                found = self._make(at, schema, description)
        return Table(self._files, name, found, schema, self._options)

    def put(self, name: str, text: str) -> None:
        """Write a file beside the tables, in the place of one that is there. Raises LedgerError."""
        self._files.put(name, text)

    def _make(self, at: str, schema: pa.Schema, description: str) -> DeltaTable:
        # Without rows: on S3, of several that make a table at once, more than one may have made it.
        # Where somebody else has made it meanwhile, or it cannot be made, opening it says so.
        with suppress(DeltaError):
            create_table_with_add_actions(
                at, Schema.from_arrow(schema), [], description=description, storage_options=self._options
            )
        return DeltaTable(at, storage_options=self._options)


class _File(NamedTuple):
    """A file that Spark has written, with what its readers skip it by."""

    path: str
    size: int
    modified_ms: int
    stats: dict[str, Any]


class Table:
    """One table, as it was when it was opened."""

    def __init__(
        self, files: Files, name: str, delta: DeltaTable, schema: pa.Schema, options: Mapping[str, str]
    ) -> None:
        self._files = files
        self._name = name
        self._delta = delta
        self._schema = schema
        self._options = dict(options)

    @property
    def place(self) -> str:
        """Its path or URL."""
        return self._files.place(self._name)

    @property
    def version(self) -> int | None:
        """The version of the last transaction that an audit has written; None: no audit has written any."""
        return self._delta.transaction_version(WRITER)

    @property
    def description(self) -> str | None:
        """The description that it was made with."""
        return self._delta.metadata().description

    def paths(self) -> list[str]:
        """Return the files that count, relative to the table."""
        return [str(path) for path in pa.table(self._delta.get_add_actions())["path"].to_pylist()]

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, of a table that is small."""
        with _told(self.place):
            return list(self._delta.to_pyarrow_table().to_pylist())

    def write(self, folder: str, rows: DataFrame, divided_by: str) -> list[AddAction]:
        """Have Spark write files into a folder of its own below `folder`, of no meaning before a commit.

        They are divided by a column, which is in their paths and not in them.
        """
        folder = f"{folder}-{token_hex(4)}"
        place = self._files.place(f"{self._name}/{folder}")
        columns = [name for name in rows.columns if name != divided_by]
        ordered = rows.hint("rebalance", divided_by).sortWithinPartitions(divided_by, *_SKIPPED_BY)
        ordered.write.partitionBy(divided_by).parquet(place)
        # Of no rows there are no files, and in a store no folder.
        if not self._files.names(f"{self._name}/{folder}"):
            return []
        written = rows.sparkSession.read.schema(rows.select(columns).schema).parquet(place)
        return [_added(each) for each in _described(written, folder)]

    def commit(self, version: int, added: Iterable[AddAction], removed: Iterable[str]) -> None:
        """Make files count, and others not, at once; those of before stay for their readers, until `vacuum`.

        Raises OvertakenByAnother when another audit wrote since the table was opened.
        """
        now_ms = time.time_ns() // 1_000_000
        gone = (RemoveAction(path, True, now_ms, partition_values={}) for path in removed)
        actions: list[AddAction | RemoveAction] = [*added, *gone]
        with _told(self.place):
            self._delta.create_write_transaction(
                actions, "append", Schema.from_arrow(self._schema), [], commit_properties=_transaction(version)
            )

    def replace(self, version: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write all rows of a small table anew.

        Raises OvertakenByAnother when another audit wrote since the table was opened.
        """
        with _told(self.place):
            write_deltalake(
                self._delta,
                pa.Table.from_pylist(list(rows), self._schema),
                mode="overwrite",
                commit_properties=_transaction(version),
            )

    def vacuum(self) -> None:
        """Remove files that have not counted for a week, or never did."""
        with _told(self.place):
            if self._delta.vacuum(full=True):
                self._delta.vacuum(dry_run=False, full=True)


def _transaction(version: int) -> CommitProperties:
    """Return what makes a commit fail where another one of an audit came between."""
    return CommitProperties(app_transactions=[Transaction(WRITER, version)], max_commit_retries=3)


def _described(written: DataFrame, folder: str) -> Iterator[_File]:
    """Yield the files of a folder that was just written."""
    files = written.groupBy(
        sf.col("_metadata.file_path").alias("path"),
        sf.col("_metadata.file_size").alias("size"),
        sf.unix_millis("_metadata.file_modification_time").alias("modified_ms"),
    ).agg(
        sf.count(sf.lit(1)).alias("rows"),
        sf.min("delay_topic").alias("first"),
        sf.max("delay_topic").alias("last"),
        sf.date_format(sf.min("minute"), _TIME).alias("from"),
        sf.date_format(sf.max("minute"), _TIME).alias("to"),
    )
    for row in files.collect():
        stats = {
            "numRecords": row["rows"],
            "minValues": dict(zip(_SKIPPED_BY, (row["first"], row["from"]), strict=True)),
            "maxValues": dict(zip(_SKIPPED_BY, (row["last"], row["to"]), strict=True)),
            "nullCount": dict.fromkeys(_SKIPPED_BY, 0),
        }
        yield _File(folder + str(row.path).partition(folder)[2], row.size, row.modified_ms, stats)


def _added(file: _File) -> AddAction:
    return AddAction(file.path, file.size, {}, file.modified_ms, True, json.dumps(file.stats))


def _s3_options(setting: Callable[[str], str | None], bucket: str) -> dict[str, str]:
    """Return how `deltalake` reaches S3, as Spark's settings `fs.s3a...` say; what they do not say is the machine's."""

    def said(name: str) -> str | None:
        # Hadoop has settings for one bucket, which come before those for all.
        for key in (f"fs.s3a.bucket.{bucket}.{name}", f"fs.s3a.{name}"):
            if text := setting(key):
                return text
        return None

    endpoint, options = said("endpoint"), dict[str, str | None]()
    if endpoint is not None:
        scheme = "http" if said("connection.ssl.enabled") == "false" else "https"
        options["AWS_ENDPOINT_URL"] = endpoint if "://" in endpoint else f"{scheme}://{endpoint}"
        options["AWS_ALLOW_HTTP"] = "true" if str(options["AWS_ENDPOINT_URL"]).startswith("http://") else None
        options["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = "false"
    options["AWS_REGION"] = said("endpoint.region")
    options["AWS_ACCESS_KEY_ID"] = said("access.key")
    options["AWS_SECRET_ACCESS_KEY"] = said("secret.key")
    options["AWS_SESSION_TOKEN"] = said("session.token")
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _told(place: str) -> Iterator[None]:
    """Raise OvertakenByAnother or PublishingError in place of what `deltalake` raises."""
    try:
        yield
    except CommitFailedError as error:
        raise OvertakenByAnother(f"{place}: {error}") from error
    # `deltalake` raises errors of its own, those of files, and of values that it does not take.
    except (DeltaError, OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise PublishingError(f"--tables: {place} cannot be read or written: {text}") from error
