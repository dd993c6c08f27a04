"""Tests of the program of an executor pod."""

from __future__ import annotations

from pathlib import Path

from delaytopic_audit.runtime.executor import executor_command
from delaytopic_audit.runtime.session import LOGGING

WRITTEN_BY_SPARK = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.1.2.3:7078",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-abc",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.4",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "audit-exec-7",
    "SPARK_EXECUTOR_MEMORY": "2048m",
}


def test_jars_that_the_caller_names_come_first() -> None:
    command = executor_command({**WRITTEN_BY_SPARK, "SPARK_CLASSPATH": "/jars/*"}, "/java", Path("/spark"))

    assert command[command.index("-cp") + 1] == "/jars/*:/spark/jars/*"


def test_the_command_is_made_of_what_spark_wrote_into_the_pod_with_options_by_number() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Doption={number}" for number in (10, 2, 0)}

    assert executor_command({**WRITTEN_BY_SPARK, **options, "HOME": "/tmp"}, "/java", Path("/spark")) == [
        "/java",
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "-Doption=0",
        "-Doption=2",
        "-Doption=10",
        "-Xms2048m",
        "-Xmx2048m",
        "-cp",
        "/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@10.1.2.3:7078"),
        *("--executor-id", "7"),
        *("--cores", "2"),
        *("--app-id", "spark-abc"),
        *("--hostname", "10.1.2.4"),
        *("--resourceProfileId", "0"),
        *("--podName", "audit-exec-7"),
    ]
