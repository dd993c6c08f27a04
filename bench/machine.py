"""Facts about the machine that a result comes from."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redis import Redis

from delaytopic_local.servers.kafka_jars import KAFKA_VERSION


def describe_machine() -> dict[str, Any]:
    """Processors, how busy they were just before, the date, and versions."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "processors": processors(),
        "processor": _processor(),
        "loadBefore": round(load(), 2),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "confluentKafka": version("confluent-kafka"),
        "kafka": KAFKA_VERSION,
    }


def describe_redis(url: str) -> str:
    """Name the server and its version."""
    with Redis.from_url(url) as client:
        facts: Any = client.info("server")
    valkey = facts.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {facts['redis_version']}"


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def load() -> float:
    """Processes that wanted to run, on average over the last minute."""
    return os.getloadavg()[0]


def available_bytes() -> int:
    """Return how much memory processes could take."""
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return int(facts["MemAvailable"].split()[0]) << 10


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
