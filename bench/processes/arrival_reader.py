"""The arrival reader, a process of its own: notes when a `read_committed` consumer gets each record.

    python -m bench.processes.arrival_reader --bootstrap-servers HOST:PORT --topic TOPIC --records N --output FILE

Ends with the N-th record (or by SIGTERM). The file holds two columns of N 64-bit integers: sequence numbers, then
arrival times in epoch milliseconds.
"""

from __future__ import annotations

import argparse
import math
from array import array
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from bench.clock import now_ms
from bench.records import PARTITIONS, sequence_of

LIMIT = 500
WAIT_SECONDS = 0.2


def main() -> None:
    """Parse the arguments, read, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.processes.arrival_reader")
    for name in ("--bootstrap-servers", "--topic", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--records", required=True, type=int)
    options = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap_servers,
            "group.id": f"arrivals.{options.topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 2,
        }
    )
    consumer.assign([TopicPartition(options.topic, partition, 0) for partition in range(PARTITIONS)])
    write_arrivals(Path(options.output), *_read(consumer, options.records))
    consumer.close()


def _read(consumer: Consumer, records: int) -> tuple[array[int], array[int]]:
    sequences, arrived_ms = array("q"), array("q")
    while len(sequences) < records:
        # A single record is waited for, so that the rest of a batch does not make the first of it wait.
        first = consumer.poll(WAIT_SECONDS)
        messages = [first, *consumer.consume(LIMIT, 0)] if first is not None else []
        at_ms = math.ceil(now_ms())
        for message in messages:
            if message.error() is None:
                sequences.append(sequence_of(message.key()))
                arrived_ms.append(at_ms)
    return sequences, arrived_ms


def write_arrivals(path: Path, sequences: array[int], arrived_ms: array[int]) -> None:
    """Both columns, one after the other; the file appears when it is whole."""
    partial = path.with_suffix(".partial")
    partial.write_bytes(sequences.tobytes() + arrived_ms.tobytes())
    partial.rename(path)


def read_arrivals(path: Path) -> tuple[array[int], array[int]]:
    """The inverse of `write_arrivals`."""
    both = array("q", path.read_bytes())
    half = len(both) // 2
    return both[:half], both[half:]


if __name__ == "__main__":
    main()
