"""`python -m tests.harness.prepare [--nightly]`: builds and fetches what tests need, so that no test ever does.

Downloads run side by side with the builds; these run one after the other, as those of Go use all processors. What is
there already costs nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from images.tools.binaries import HELM_3_VERSION, helm_program, kubernetes_programs, s3_program
from images.tools.errors import ImagesError
from images.tools.go_builds import ProgramsMissingError, ProgramsNotBuiltError
from playground.cluster.errors import ClusterError
from tests.harness.browser import chromium_program
from tests.harness.tls_redis import tls_redis_program
from tests.support.audit.spark_jars import delta_jars, spark_jars
from tests.support.chart.foreign_definitions import foreign_definitions
from tests.support.chart.promtool import prometheus_program, promtool_program
from tests.support.producers import console_producer, other_programs

from delaytopic_local.errors import EmbeddedServerError
from delaytopic_local.servers.kafka_jars import kafka_runtime
from speedups.build import IN_PLACE, ExtensionError, compile_extension

DOWNLOADS: Final[Mapping[str, Callable[[], object]]] = {
    "Kafka": kafka_runtime,
    "Spark's jars for S3": spark_jars,
    "Delta's jars for Spark": delta_jars,
    "Chromium": chromium_program,
    "a Redis with TLS": tls_redis_program,
    "Prometheus": lambda: (promtool_program(), prometheus_program()),
    "definitions of other operators": foreign_definitions,
}
BUILDS: Final[Mapping[str, Callable[[], object]]] = {
    "the relay's speedups": lambda: compile_extension(IN_PLACE),
    "Kubernetes": kubernetes_programs,
    "Helm": helm_program,
    "an S3 server": s3_program,
}
NIGHTLY_BUILDS: Final[Mapping[str, Callable[[], object]]] = {
    "Helm 3": lambda: helm_program(version=HELM_3_VERSION),
    "producers in Java, Go and JavaScript": other_programs,
    "Kafka's console producer": console_producer,
}
QUICK_S: Final = 1.0
NOT_TO_BE_HAD: Final = (
    *(ProgramsMissingError, ProgramsNotBuiltError),
    *(EmbeddedServerError, ClusterError, ImagesError, OSError),
)


def prepare(builds: Mapping[str, Callable[[], object]] = BUILDS) -> list[str]:
    """Make all downloads and these builds; return what could not be made, a sentence each."""
    with ThreadPoolExecutor(max_workers=2) as several, ThreadPoolExecutor(max_workers=1) as one:
        made = {name: several.submit(_timed, name, make) for name, make in DOWNLOADS.items()}
        made |= {name: one.submit(_timed, name, make) for name, make in builds.items()}
    return [f"{name}: {problem}" for name, result in made.items() if (problem := _problem(result))]


def _timed(name: str, make: Callable[[], object]) -> None:
    began = time.monotonic()
    make()
    if (seconds := time.monotonic() - began) > QUICK_S:
        print(f"prepared {name} in {seconds:.0f} s", file=sys.stderr, flush=True)


def _problem(result: Future[None]) -> str:
    try:
        result.result()
    except NOT_TO_BE_HAD as error:
        return str(error)
    except ExtensionError as error:
        # Its first line says what failed; `make speedups` shows what the compiler said.
        return str(error).partition("\n")[0]
    return ""


if __name__ == "__main__":
    for line in prepare({**BUILDS, **NIGHTLY_BUILDS} if "--nightly" in sys.argv else BUILDS):
        print(f"NOT PREPARED: {line}", file=sys.stderr)
