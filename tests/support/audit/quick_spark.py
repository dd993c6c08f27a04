"""The start of Spark for tests: a JVM that lives for a minute does not spend half of it on optimising itself."""

from __future__ import annotations

from typing import Final

from tests.harness.fixtures import QUICK_START

# Small tables and many different plans: compiling each would take longer than running it, and for each call of each
# column function PySpark would ask the JVM three times where it was made.
_SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_OPTIONS: Final = " ".join(f"--conf {name}={value}" for name, value in _SETTINGS.items())
ENVIRONMENT: Final = {"JDK_JAVA_OPTIONS": " ".join(QUICK_START), "PYSPARK_SUBMIT_ARGS": f"{_OPTIONS} pyspark-shell"}
"""Of a process that starts Spark by `spark_session`."""
