"""The jars of the audit's image: S3. What `make prepare` does not find is downloaded."""

from __future__ import annotations

from functools import cache

from images.tools.jars import jar_folder


@cache
def spark_jars() -> list[str]:
    """The jars of the lock."""
    return sorted(str(jar) for jar in jar_folder(lambda _line: None).iterdir())
