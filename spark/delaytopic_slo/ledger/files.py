"""Edge: text files on any file system that Spark takes: a local folder, `hdfs://`, `s3a://` and others."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from delaytopic_slo.errors import LedgerError


class Files:
    """Files below one root, named by paths relative to it."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        """`root` is a local folder or a URL. Raises LedgerError when no file system takes it."""
        self.root = root.rstrip("/") or "/"
        self._jvm: Any = spark._jvm
        configuration = spark._jsc.hadoopConfiguration()
        try:
            self._system = self._path("").getFileSystem(configuration)
        except Py4JJavaError as error:
            raise LedgerError(f"{root} is no place for a ledger: {_said(error)}") from error
        # Checksum files beside local files only stand in the way of people who look.
        self._system.setWriteChecksum(False)

    def place(self, name: str) -> str:
        """Return the whole path or URL, for Spark's readers and writers."""
        return str(self._system.makeQualified(self._path(name)).toString())

    def exists(self, name: str) -> bool:
        """Tell whether there is such a file or folder."""
        return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none without such a folder."""
        if not self.exists(folder):
            return []
        return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(folder)))

    def read(self, name: str) -> str:
        """Return the text of a file; raises LedgerError."""
        try:
            stream = self._system.open(self._path(name))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise LedgerError(f"{self.place(name)} cannot be read: {_said(error)}") from error

    def create(self, name: str, text: str) -> None:
        """Write a file whole or not at all; raises LedgerError when it is there already."""
        folder, _, last = name.rpartition("/")
        unfinished = self._path(f"{folder}/.{last}.unfinished")
        try:
            stream = self._system.create(unfinished, True)
            stream.write(bytearray(text.encode()))
            stream.close()
            done = not self.exists(name) and self._system.rename(unfinished, self._path(name))
        except Py4JJavaError as error:
            raise LedgerError(f"{self.place(name)} cannot be written: {_said(error)}") from error
        if not done:
            raise LedgerError(f"{self.place(name)} is there already: another run is under way in this ledger")

    def delete(self, name: str) -> None:
        """Remove a file or a folder with all that is in it; nothing when it is not there."""
        self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)


def _said(error: Py4JJavaError) -> str:
    return str(error.java_exception.toString())
