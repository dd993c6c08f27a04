"""One Spark session for all tests of the audit, with the jars of S3; DelayTopics of one real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from images.tools.binaries import s3_program
from pyspark.sql import SparkSession
from tests.harness.fixtures import prepared
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.audit.quick_spark import ENVIRONMENT
from tests.support.audit.s3_server import S3Server, s3_options
from tests.support.audit.spark_jars import spark_jars

from delaytopic_audit.runtime.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        session = spark_session(master="local[2]", cores=1, jars=spark_jars())
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, which the Spark of all tests knows."""
    server = S3Server(prepared(s3_program), tmp_path_factory.mktemp("s3"))
    for name, value in s3_options(server).items():
        spark._jsc.hadoopConfiguration().set(name, value)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def audited(kafka: KafkaAddress, tmp_path: Path) -> Callable[..., AuditedTopic]:
    """Makes a DelayTopic with topics of its own; their settings by keyword."""

    def make(partitions: int = 2, spec: dict[str, Any] | None = None, **settings: str) -> AuditedTopic:
        topic = AuditedTopic(unique("audited"), kafka.bootstrap_servers, tmp_path / "ledger", spec or {})
        return topic.create(partitions, **settings)

    return make
