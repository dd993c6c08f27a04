"""`python -m bench.audit.readers BOOTSTRAP NAME`: read an hour's topics; prints JSON.

Nothing is written: what Parquet takes is no cost of the reader. Source and target are read apart, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence

from pyspark.sql import SparkSession

from bench.audit.watch import family_cpu_seconds
from delaytopic_api.relay import RelayConfig
from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.reading.client import Reading, ReadingJob, read_by_client
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.runtime.session import spark_session


def main(bootstrap_servers: str, name: str) -> None:
    """Both topics, cold and warm; then each of them, warm."""
    config = RelayConfig.model_validate(
        {
            "name": name,
            "namespace": "bench",
            "groupId": "bench",
            "source": {"topic": f"{name}.source"},
            "target": {"topic": f"{name}.target"},
            "deadLetter": {"topic": f"{name}.source.dlq"},
            "schedule": {"maxDelay": "720h"},
            "precision": "1s",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "bench"},
            "kafka": {"bootstrapServers": bootstrap_servers},
        }
    )
    roles = {config.source.topic: Role.SOURCE, config.target.topic: Role.TARGET}
    states = KafkaFacts({"bootstrap.servers": bootstrap_servers}).states(roles)[0]
    ranges = [
        Range(topic=topic, role=role, partition=partition, start=offsets.low, end=offsets.end)
        for topic, role in roles.items()
        for partition, offsets in states[topic].partitions.items()
    ]
    spark = spark_session(memory="1g")
    parts = {"cold": ranges, "warm": ranges}
    parts |= {str(role): [piece for piece in ranges if piece.role is role] for role in roles.values()}
    print(json.dumps({part: _read(spark, config, its) for part, its in parts.items()}))


def _read(spark: SparkSession, config: RelayConfig, ranges: Sequence[Range]) -> dict[str, object]:
    """Read once; processor time is of Java and of all Python workers, and holds on a busy machine, too."""
    job = ReadingJob(client={}, readings=[Reading(number=1, config=config, ranges=list(ranges))])
    records = sum(piece.end - piece.start for piece in ranges)
    started, cpu_s = time.monotonic(), family_cpu_seconds(os.getpid())
    read_by_client(spark, job).write.format("noop").mode("overwrite").save()
    seconds, cpu_s = time.monotonic() - started, family_cpu_seconds(os.getpid()) - cpu_s
    return {
        "records": records,
        "perSecond": round(records / seconds),
        "cpuMicrosecondsPerRecord": round(cpu_s / records * 1e6, 2),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
