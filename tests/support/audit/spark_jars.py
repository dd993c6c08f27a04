"""Jars for Spark: those of the audit's image, which are S3's, and those that read Delta's tables.

What `make prepare` does not find is downloaded.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from images.tools.jars import jar_folder
from jgo.maven import MavenContext
from tests.support.paths import ROOT

HOW_TO_QUERY: Final = ROOT / "docs/how-to/query-audits.md"


@cache
def spark_jars() -> list[str]:
    """The jars of the lock."""
    return sorted(str(jar) for jar in jar_folder(lambda _line: None).iterdir())


@cache
def delta_jars() -> list[Path]:
    """The jars of the package that the page tells its readers to take, and of the one that it needs."""
    page = HOW_TO_QUERY.read_text(encoding="utf-8")
    [(name, version)] = re.findall(r"--packages io\.delta:(\S+):(\S+)", page)
    maven = MavenContext()
    return [
        maven.project("io.delta", each).at_version(version).artifact().resolve() for each in (name, "delta-storage")
    ]
