"""One Spark session for all tests of the audit, with the official Kafka connector on its class path."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.slo.connector_jars import connector_jars
from tests.slo.quick_spark import ENVIRONMENT

from delaytopic_slo.runtime.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in ENVIRONMENT.items():
            patched.setenv(name, value)
        session = spark_session(master="local[2]", cores=1, jars=connector_jars())
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()
