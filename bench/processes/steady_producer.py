"""The steady producer, a process of its own: records one to three seconds ahead of their time, at an even rate.

    python -m bench.processes.steady_producer --bootstrap-servers HOST:PORT --topic TOPIC --plan 2000x8,10000x8,50000
                                  --output FILE [--dialect Native] [--target TOPIC]

The last number of the plan is a burst, whose records are all due in one instant. Ends when all is acknowledged. The
file holds the due times, 64-bit integers in the order of the sequence numbers. Some dialects name the target.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from array import array
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from bench.clock import now_ms
from bench.dialects import NATIVE, SPEECHES, Speech
from bench.processes.plan import Phase, Plan, due_by_now
from bench.records import partition_of
from delaytopic_api.values import Dialect

NEAREST_MS = 1_000
FARTHEST_MS = 3_000
BURST_AHEAD_MS = 4_000
STEP_SECONDS = 0.005
FLUSH_SECONDS = 30.0


class SteadyProducer:
    """Sends what a plan says."""

    def __init__(self, bootstrap_servers: str, topic: str, speech: Speech = NATIVE, target: str = "") -> None:
        self._topic = topic
        self._speech = speech
        self._target = target
        self.due_ms: array[int] = array("q")
        """The due times of what was sent, by sequence number."""
        self.failed: KafkaError | None = None
        self._draw = random.Random(topic).random
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "linger.ms": 5,
                "enable.idempotence": True,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
            }
        )

    def phase(self, phase: Phase) -> None:
        """Keep to the rate; what was missed is caught up."""
        started, sent = time.monotonic(), 0
        while sent < phase.records:
            target = due_by_now(phase, time.monotonic() - started)
            at_ms = int(now_ms())
            for _ in range(target - sent):
                self._send(at_ms + NEAREST_MS + int(self._draw() * (FARTHEST_MS - NEAREST_MS)))
            sent = target
            self._producer.poll(STEP_SECONDS)

    def burst(self, records: int) -> None:
        """Send as fast as possible records that are all due in one instant, after the phases before it."""
        if not records:
            return
        time.sleep(FARTHEST_MS / 1_000)
        due_ms = int(now_ms()) + BURST_AHEAD_MS
        for _ in range(records):
            self._send(due_ms)

    def finish(self) -> int:
        """Wait for the acknowledgements; returns how many records are without."""
        return self._producer.flush(FLUSH_SECONDS)

    def _send(self, due_ms: int) -> None:
        sequence, due_ms = len(self.due_ms), self._speech.due_ms(due_ms)
        self.due_ms.append(due_ms)
        key, value, headers = self._speech.write(sequence, due_ms, self._target)
        self._producer.produce(self._topic, value, key, partition_of(sequence), headers=[*headers])

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        self.failed = error or self.failed


def main() -> int:
    """Parse the arguments and send; exit code 1 if something could not be sent."""
    parser = argparse.ArgumentParser(prog="python -m bench.processes.steady_producer")
    for name in ("--bootstrap-servers", "--topic", "--plan", "--output"):
        parser.add_argument(name, required=True)
    parser.add_argument("--dialect", type=Dialect, default=Dialect.NATIVE)
    parser.add_argument("--target", default="")
    options = parser.parse_args()
    plan = Plan.parse(options.plan)
    speech = SPEECHES[options.dialect]
    producer = SteadyProducer(options.bootstrap_servers, options.topic, speech, options.target)
    for phase in plan.phases:
        producer.phase(phase)
    producer.burst(plan.burst)
    left = producer.finish()
    if left or producer.failed is not None:
        print(f"{left} records are not there ({producer.failed})", file=sys.stderr)
        return 1
    Path(options.output).write_bytes(producer.due_ms.tobytes())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
