"""The jars of Spark's official Kafka connector, from the Maven repository; downloaded once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jgo.maven import MavenContext

# The newest connector needs a token provider that has only been released as a preview.
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)


@cache
def connector_jars() -> list[str]:
    """The four jars, without what Spark brings itself."""
    maven = MavenContext()
    return [str(_jar(maven, *artifact)) for artifact in ARTIFACTS]


def _jar(maven: MavenContext, group: str, name: str, version: str) -> Path:
    return Path(maven.project(group, name).at_version(version).artifact().resolve())
