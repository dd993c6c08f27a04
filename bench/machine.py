"""Facts about the machine that a result comes from."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

from delaytopic_cli.embedded.kafka_jars import KAFKA_VERSION


def describe_machine() -> dict[str, Any]:
    """Processors, how busy they were just before, and versions."""
    return {
        "processors": processors(),
        "loadBefore": round(load(), 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "confluentKafka": version("confluent-kafka"),
        "kafka": KAFKA_VERSION,
    }


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def load() -> float:
    """Processes that wanted to run, on average over the last minute."""
    return os.getloadavg()[0]
