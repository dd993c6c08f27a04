"""Reads a partition on trial, under a bound on its memory, as a process of its own.

The client library unpacks a whole batch at once, in a thread of its own, and ends the process where memory is refused.
A document on standard input says what to read. Each offset behind what was read goes to standard output, in a line;
the first line says that the bound is in force. Started by its path: it imports as little as it can, as it shares a
container's memory with a relay.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

OUT_OF_MEMORY = 3
"""The exit code where Python was refused memory; where the client was, it aborts the process."""
PORTION = 500
LOOK_S = 5.0
"""The time for a look behind the last offset that was asked for: more than a relay reads ahead before it commits for
the first time."""
SILENCE_S = 15.0
"""The time without a record after which there is nothing to be learned here."""


def _bound(limit_bytes: int) -> None:
    """Allow so many bytes more than what the process has. Raises `OSError` where the kernel does not tell."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (used_kib,) = (int(line.split()[1]) for line in status if line.startswith("VmData:"))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = (used_kib << 10) + limit_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _say(text: str) -> None:
    os.write(sys.stdout.fileno(), f"{text}\n".encode())


def _read(consumer: Consumer, until: int, *, alone: bool, first: bool) -> None:
    """Read until `until` and some seconds further, or the end, or anything else than a record; `first` is enough."""
    heard_s, reached_s = time.monotonic(), 0.0
    while True:
        # One by one, where each batch comes alone: what was read is said before the next batch is unpacked.
        messages: Sequence[Message] = _one(consumer) if alone else consumer.consume(PORTION, 0.1)
        now_s = time.monotonic()
        good = [message for message in messages if message.error() is None]
        if good:
            behind = (good[-1].offset() or 0) + 1
            heard_s, reached_s = now_s, reached_s or (now_s if behind >= until else 0.0)
            _say(str(behind))
        if len(good) < len(messages) or (first and good):
            return
        if now_s - heard_s > SILENCE_S or (reached_s and now_s - reached_s > LOOK_S):
            return


def _one(consumer: Consumer) -> Sequence[Message]:
    message = consumer.poll(0.1)
    return [message] if message is not None else []


def main() -> None:
    """Do as the document says, and leave without waiting for the client's threads."""
    asked: dict[str, Any] = json.load(sys.stdin)
    consumer = Consumer(asked["settings"])
    # The client starts a thread for each broker that it hears of: their stacks are no part of what is bounded.
    consumer.list_topics(asked["topic"], timeout=10)
    _bound(asked["limitBytes"])
    _say("bounded")
    consumer.assign([TopicPartition(asked["topic"], asked["partition"], asked["start"])])
    try:
        _read(consumer, asked["until"], alone=asked["alone"], first=asked["first"])
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(0)


if __name__ == "__main__":
    main()
