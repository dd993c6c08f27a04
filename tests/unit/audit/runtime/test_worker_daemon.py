"""Tests of what Python workers start from."""

from __future__ import annotations

import zipfile
from pathlib import Path

from delaytopic_audit.runtime.worker_daemon import without_archives


def test_workers_leave_out_sparks_zip_files_where_spark_is_installed(tmp_path: Path) -> None:
    archive, package = str(tmp_path / "pyspark.zip"), tmp_path / "packages"
    for name in ("pyspark", "py4j"):
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").touch()

    assert without_archives([archive, str(package)]) == [str(package)]


def test_workers_keep_sparks_zip_files_where_there_is_nothing_else(tmp_path: Path) -> None:
    archive = tmp_path / "pyspark.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("pyspark/__init__.py", "")

    assert without_archives([str(archive), str(tmp_path)]) == [str(archive), str(tmp_path)]
