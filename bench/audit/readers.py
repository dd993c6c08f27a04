"""`python -m bench.audit.readers BOOTSTRAP NAME client|connector JARS FOLDER`: read an hour's topics; prints JSON."""

from __future__ import annotations

import json
import sys
import time

from delaytopic_api.relay import RelayConfig
from delaytopic_audit.model.manifest import Range, Role
from delaytopic_audit.reading.client import Reading, ReadingJob, read_by_client
from delaytopic_audit.reading.connector import read_by_connector
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.runtime.session import spark_session

RUNS = 2


def main(bootstrap_servers: str, name: str, reader: str, jars: str, folder: str) -> None:
    """Both topics to Parquet, cold and warm."""
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
    spark = spark_session(memory="1g", jars=[jar for jar in jars.split(",") if jar])
    read = read_by_client if reader == "client" else read_by_connector
    job = ReadingJob(client={}, readings=[Reading(number=1, config=config, ranges=ranges)])
    total, rates = sum(piece.end - piece.start for piece in ranges), []
    for _ in range(RUNS):
        started = time.monotonic()
        read(spark, job).write.mode("overwrite").parquet(folder)
        rates.append(round(total / (time.monotonic() - started)))
    print(json.dumps({"records": total, "coldPerSecond": rates[0], "warmPerSecond": max(rates[1:])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
