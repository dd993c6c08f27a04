"""The locked jars are those of the one Spark that the audit's image has."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark
from images.tools.catalogue import IMAGE_LIST
from images.tools.jars import locked_jars

JARS = Path(pyspark.__file__).parent / "jars"


def released(name: str) -> set[str]:
    """Versions of the locked jars whose name begins so."""
    return {jar.version for jar in locked_jars() if jar.name.startswith(name)}


def test_s3_is_of_the_hadoop_that_spark_brings() -> None:
    (hadoop,) = (file.stem.removeprefix("hadoop-client-api-") for file in JARS.glob("hadoop-client-api-*.jar"))

    assert released("hadoop-aws") == {hadoop}


def test_no_jar_is_one_that_spark_brings() -> None:
    brought = {re.sub(r"-[0-9].*", "", file.stem) for file in JARS.glob("*.jar")}

    assert brought & {jar.name for jar in locked_jars()} == set()


def test_each_jar_is_pinned_by_its_content_and_once() -> None:
    jars = locked_jars()

    assert all(re.fullmatch("[0-9a-f]{64}", jar.digest) for jar in jars)
    assert len({jar.name for jar in jars}) == len(jars)


def test_the_audits_image_alone_has_them() -> None:
    assert [image.name for image in IMAGE_LIST if image.has_jars] == ["audit"]
