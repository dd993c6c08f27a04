"""Edge: the program of an executor pod: Spark's executor, in the Java and with the jars of this installation.

Spark's own images have a shell script for it. It gets the same variables, which Spark writes into the pod.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyspark

from delaytopic_audit.runtime.session import LOGGING, java_home

_PROGRAM: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION: Final = "SPARK_JAVA_OPT_"
_ARGUMENTS: Final = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def executor_command(environment: Mapping[str, str], java: str, spark_home: Path) -> list[str]:
    """Return the command of the executor that the environment describes."""
    options = [name for name in environment if name.startswith(_JAVA_OPTION)]
    options.sort(key=lambda name: int(name.removeprefix(_JAVA_OPTION)))
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    return [
        java,
        f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        *(environment[name] for name in options),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(filter(None, (environment.get("SPARK_CLASSPATH"), f"{spark_home}/jars/*"))),
        _PROGRAM,
        *(word for argument, variable in _ARGUMENTS.items() for word in (argument, environment[variable])),
    ]


def main() -> None:
    """Become the executor."""
    spark_home = Path(pyspark.__file__).parent
    # A folder of the pod's own: it goes with the pod, as this process does not come back.
    with java_home(os.environ["SPARK_LOCAL_DIRS"].partition(",")[0]):
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home is not None else str(shutil.which("java"))
        environment = {**os.environ, "SPARK_HOME": str(spark_home)}
        os.execve(java, executor_command(os.environ, java, spark_home), environment)


if __name__ == "__main__":
    main()
