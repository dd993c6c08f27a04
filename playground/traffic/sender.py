"""Sends what a plan says: `python -m ...traffic.sender BOOTSTRAP TOPIC PLAN`, and tells how it went.

It goes on through a broker that is away for minutes; its retries double nothing.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from .plan import Plan, Step, steps
from .records import Content, headers_of, value_of
from .telling import tell

PATIENCE_SECONDS = 300


class Sender:
    """One run; `result` is what it came to."""

    def __init__(self, bootstrap_servers: str, topic: str, plan: Plan) -> None:
        self._topic = topic
        self._plan = plan
        self._acknowledged = 0
        self._errors: list[str] = []
        self._last_due_ms = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 2,
                "partitioner": "murmur2_random",
                "message.timeout.ms": PATIENCE_SECONDS * 1_000,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def run(self) -> dict[str, Any]:
        """Send everything and wait until it is there."""
        started_ms = _now_ms()
        for step in steps(self._plan):
            self._wait_until(started_ms + step.at_ms)
            self._send(step, started_ms)
        unsent = self._producer.flush(PATIENCE_SECONDS)
        return {
            "run": self._plan.run,
            "records": self._plan.records,
            "acknowledged": self._acknowledged,
            "unsent": unsent,
            "errors": self._errors[:5],
            "started_ms": started_ms,
            "ended_ms": _now_ms(),
            "last_due_ms": self._last_due_ms,
        }

    def _send(self, step: Step, started_ms: int) -> None:
        due_ms = None
        if step.delay_ms is not None:
            due_ms = (started_ms if self._plan.from_start else _now_ms()) + step.delay_ms
            self._last_due_ms = max(self._last_due_ms, due_ms)
        content = Content(self._plan.run, step.number, due_ms)
        headers: list[tuple[str, str | bytes | None]] = [*headers_of(content, step.id)]
        self._producer.produce(
            self._topic, value_of(content), step.key, headers=headers, on_delivery=self._note_delivery
        )
        self._producer.poll(0)

    def _wait_until(self, moment_ms: int) -> None:
        """Serving acknowledgements the while."""
        while (left_ms := moment_ms - _now_ms()) > 0:
            self._producer.poll(left_ms / 1_000)

    def _note_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._errors.append(error.str())
        else:
            self._acknowledged += 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    bootstrap, destination, plan_text = sys.argv[1:]
    result = Sender(bootstrap, destination, Plan.decode(plan_text)).run()
    tell(result)
    sys.exit(1 if result["errors"] or result["unsent"] else 0)
