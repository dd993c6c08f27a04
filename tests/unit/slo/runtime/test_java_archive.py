"""Tests of whether Java starts from what it learned in a rehearsal, and what its Python workers start from."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from delaytopic_slo.errors import SparkMissingError
from delaytopic_slo.runtime.java_archive import archive_file, archive_options, make_archive
from delaytopic_slo.runtime.worker_daemon import without_archives


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "delaytopic"


def test_without_an_archive_java_starts_as_ever() -> None:
    assert archive_options() == ""


def test_an_archive_of_these_versions_is_started_from(cache: Path) -> None:
    file = archive_file()
    assert file is not None
    cache.mkdir()
    file.touch()

    assert file.parent == cache
    assert archive_options() == f'-XX:AOTCache="{file}" -Xlog:aot*=off -Xlog:cds*=off'


def test_a_java_of_the_callers_starts_without_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/java")

    assert archive_file() is None
    assert archive_options() == ""
    with pytest.raises(SparkMissingError, match="unset JAVA_HOME"):
        make_archive()


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
