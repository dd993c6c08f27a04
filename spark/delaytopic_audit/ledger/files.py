"""Edge: text files on any file system that Spark takes: a local folder, `hdfs://`, `s3a://` and others.

This is the one module that calls Hadoop by PySpark's private `_jvm`. PySpark has no public way to list files, or to
create one only where there is none. Client libraries for Python that can are for some stores alone, have none of the
settings of Spark in files of Hadoop, and take no providers of credentials by their Java classes: tables would be
where documents cannot be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from delaytopic_audit.errors import LedgerError, OvertakenError

CONDITIONAL: Final = "fs.option.create.conditional.overwrite"
"""Hadoop's word for object stores that create a file with its last byte, and only if there is none."""
_HADOOP: Final = "org.apache.hadoop.fs"
_FROM_JAVA: Final = (Py4JError, PySparkException, OSError)
"""The errors of Java, and what PySpark makes of some of them; the last: Java is gone, or a link cannot be made."""
_OF_SETTINGS: Final = (
    *("IllegalArgumentException", "UnsupportedOperationException", "UnsupportedFileSystemException"),
    *("AccessDeniedException", "AccessControlException", "UnknownStoreException", "ClassNotFoundException"),
    *("CredentialInitializationException", "NoAuthWithAWSException", "InstantiationIOException", "No FileSystem for"),
)
"""The words of errors that come again as long as the place and its settings are what they are."""


class Files:
    """Files below one root, named by paths relative to it.

    Calls raise LedgerError when the place does not answer, with whose fault it is and whether to try again.
    """

    def __init__(self, spark: SparkSession, root: str) -> None:
        """`root` is a local folder or a URL. Raises LedgerError when no file system takes it."""
        self.root = root.rstrip("/") or "/"
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        try:
            # By its whole name, and once: step by step, each package on the way is looked for as a class in all jars.
            self._path_class: Any = getattr(spark._jvm, f"{_HADOOP}.Path")
            self._settings = spark._jsc.hadoopConfiguration()
            self._system = self._path("").getFileSystem(self._settings)
            # Checksum files beside local files only stand in the way of people who look.
            self._system.setWriteChecksum(False)
        except _FROM_JAVA as error:
            raise LedgerError(f"{root} is no place for files: {_said(error)}") from error

    def place(self, name: str) -> str:
        """Return the whole path or URL, for Spark's readers and writers."""
        with self._named(name, "named"):
            return str(self._system.makeQualified(self._path(name)).toString())

    def setting(self, name: str) -> str | None:
        """Return a setting of Hadoop, such as `fs.s3a.endpoint`, as its file systems have it; None without any."""
        with self._named("", "read"):
            return str(text) if (text := self._settings.getTrimmed(name)) else None

    def exists(self, name: str) -> bool:
        """Tell whether there is such a file or folder."""
        with self._named(name, "read"):
            return bool(self._system.exists(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none without such a folder."""
        if not self.exists(folder):
            return []
        with self._named(folder, "read"):
            return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(folder)))

    def read(self, name: str) -> str:
        """Return the text of a file."""
        with self._named(name, "read"):
            stream = self._system.open(self._path(name))
            try:
                return str(getattr(self._jvm, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, name: str, text: str) -> None:
        """Write a file whole or not at all; raises OvertakenError when another one is there already."""
        try:
            self._create(name, text)
        except _FROM_JAVA as error:
            # An answer that was lost, too, is an error: the file may be there.
            if not self.exists(name):
                raise LedgerError(f"{self._told(name)} cannot be written: {_said(error)}") from error
        if self.read(name) != text:
            raise OvertakenError(f"{self.place(name)} is there already: another audit was quicker")

    def put(self, name: str, text: str) -> None:
        """Write a file whole or not at all, in the place of one that is there."""
        with self._named(name, "written"):
            if self._is_store(name):
                self._write(self._system.create(self._path(name), True), text)
                return
            with self._unfinished(name, text) as unfinished:
                self._replace(unfinished, self._path(name))

    def _replace(self, unfinished: Any, name: Any) -> None:
        """Rename, over what is there: of Hadoop's interfaces only this one does that."""
        options, contexts = (getattr(self._jvm, f"{_HADOOP}.{name}") for name in ("Options", "FileContext"))
        overwrite = self._gateway.new_array(options.Rename, 1)
        overwrite[0] = options.Rename.OVERWRITE
        context = contexts.getFileContext(self._system.getUri(), self._system.getConf())
        context.rename(self._system.makeQualified(unfinished), self._system.makeQualified(name), overwrite)

    def _create(self, name: str, text: str) -> None:
        """Create a file that nobody sees before it is whole. When there is one, nothing happens, or any error."""
        if self._is_store(name):
            self._write(self._system.createFile(self._path(name)).create().must(CONDITIONAL, True).build(), text)
            return
        with self._unfinished(name, text) as unfinished:
            if self._system.getScheme() == "file":
                # A rename would replace: of what a local file system does, a link alone needs an empty place.
                os.link(self._local(unfinished), self._local(self._path(name)))
            else:
                self._system.rename(unfinished, self._path(name))

    def _is_store(self, name: str) -> bool:
        """Tell whether a file is there with its last byte, and not before: in an object store."""
        return bool(self._system.hasPathCapability(self._path(name), CONDITIONAL))

    @contextmanager
    def _unfinished(self, name: str, text: str) -> Iterator[Any]:
        """Write a file beside its place, under a name that nobody reads, and remove that name at the end."""
        folder, slash, last = name.rpartition("/")
        unfinished = self._path(f"{folder}{slash}.{last}.{token_hex(4)}")
        try:
            self._write(self._system.create(unfinished, False), text)
            yield unfinished
        finally:
            self._system.delete(unfinished, False)

    @contextmanager
    def _named(self, name: str, what: str) -> Iterator[None]:
        """Raise LedgerError, with the file's name, in place of what Java throws."""
        try:
            yield
        except _FROM_JAVA as error:
            raise LedgerError(f"{self._told(name)} cannot be {what}: {_said(error)}") from error

    def _told(self, name: str) -> str:
        """Return the place of a file for people, even if Java is gone."""
        return f"{self.root}/{name}" if name else self.root

    def _write(self, stream: Any, text: str) -> None:
        stream.write(bytearray(text.encode()))
        stream.close()

    def _local(self, path: Any) -> Path:
        return Path(str(self._system.makeQualified(path).toUri().getPath()))

    def delete(self, name: str) -> None:
        """Remove a file or a folder with all that is in it; nothing when it is not there."""
        with self._named(name, "removed"):
            self._system.delete(self._path(name), True)

    def _path(self, name: str) -> Any:
        return self._path_class(self._told(name))


def _said(error: Py4JError | PySparkException | OSError) -> str:
    """Return what went wrong, whose fault it is, and whether to try again."""
    if isinstance(error, Py4JJavaError):
        text = str(error.java_exception.toString()).partition("\n")[0]
    elif isinstance(error, PySparkException):
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
    elif isinstance(error, OSError) and error.filename is not None:
        text = str(error.strerror)
    else:
        return "Spark's Java does not answer: start the audit again, with more memory if that was too little"
    if any(word in text for word in _OF_SETTINGS):
        return f"{text}. The place, its settings or its rights are to be changed: another try ends in the same way"
    return f"{text}. The audit can be run again once the place answers: what was committed is whole"
