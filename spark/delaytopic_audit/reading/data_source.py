"""Edge: the Python Data Source that the extract is read with.

Spark starts several processes that only ask what there is to read, so nothing but that is imported here: what reads
is named by an option, and is imported by the processes that read.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from delaytopic_audit.tables.schemas import EXTRACT

NAME: Final = "delaytopic"


def read_shares(spark: SparkSession, reads: str, options: dict[str, str], shares: Sequence[str]) -> DataFrame:
    """Return the extract of some shares, a task for each; read when it is used, and each time anew.

    `reads` is a module whose `share_of(options, share)` yields Arrow's batches.
    """
    spark.dataSource.register(AuditSource)
    reader = spark.read.format(NAME).options(**options).option("reads", reads)
    return reader.option("shares", json.dumps(list(shares))).load()


class AuditSource(DataSource):
    """`spark.read.format("delaytopic")`."""

    @classmethod
    def name(cls) -> str:
        """Return the source's name; `kafka` is that of Spark's own connector."""
        return NAME

    def schema(self) -> StructType:
        """Return the schema of the extract."""
        return EXTRACT

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of one batch."""
        return _Reader({str(name): str(value) for name, value in self.options.items()})


class _Share(InputPartition):
    """The share of one task, as the reading module understands it."""

    def __init__(self, text: str) -> None:
        super().__init__(None)
        self.text = text


class _Reader(DataSourceReader):
    """Reads each share in a task of its own."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [_Share(text) for text in json.loads(self._options["shares"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Share)
        batches: Iterator[Any] = importlib.import_module(self._options["reads"]).share_of(self._options, partition.text)
        return batches
