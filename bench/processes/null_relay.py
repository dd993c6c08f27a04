"""The null relay, a process of its own: it consumes and produces, and does nothing else. The measure of all ratios.

    python -m bench.processes.null_relay --bootstrap-servers HOST:PORT --source TOPIC --target TOPIC --group ID
                               [--transactional-id ID]

With a transactional id, it is the plain loop's transactional twin, which commits every 50 ms. Runs until SIGTERM.
The clients have the settings of the relay.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Message, Producer

from delaytopic_api.relay import KafkaClient
from delaytopic_process.stop_flag import StopFlag
from delaytopic_relay.kafka import connection_settings
from delaytopic_relay.kafka.settings import consumer_settings, producer_settings

POLL_LIMIT = 1_000
POLL_SECONDS = 0.005
COMMIT_SECONDS = 0.05
TIMEOUT_SECONDS = 30.0
BATCH_BYTES = 1 << 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and relay until stopped."""
    options = _parser().parse_args(arguments)
    stop = StopFlag()
    connection = connection_settings(KafkaClient(bootstrap_servers=options.bootstrap_servers))
    consumer = Consumer(
        {
            **consumer_settings(connection, options.group, 6_000, "null-relay"),
            "auto.offset.reset": "earliest",
            "enable.partition.eof": False,
        }
    )
    producer = Producer(producer_settings(connection, "null-relay", options.transactional_id, BATCH_BYTES))
    producer.list_topics(options.target, TIMEOUT_SECONDS)  # connected, so that the first record does not wait for it
    consumer.subscribe([options.source])
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    if options.transactional_id is None:
        _relay(consumer, producer, options.target, stop)
    else:
        _relay_in_transactions(consumer, producer, options.target, stop)
    consumer.close()


def _relay(consumer: Consumer, producer: Producer, target: str, stop: StopFlag) -> None:
    while not stop.is_set:
        _copy(consumer.consume(POLL_LIMIT, POLL_SECONDS), producer, target)
    producer.flush(TIMEOUT_SECONDS)


def _relay_in_transactions(consumer: Consumer, producer: Producer, target: str, stop: StopFlag) -> None:
    producer.init_transactions(TIMEOUT_SECONDS)
    while not stop.is_set:
        messages = consumer.consume(POLL_LIMIT, POLL_SECONDS)
        if not messages:
            continue
        producer.begin_transaction()
        commit_at = time.monotonic() + COMMIT_SECONDS
        _copy(messages, producer, target)
        while (left := commit_at - time.monotonic()) > 0:
            _copy(consumer.consume(POLL_LIMIT, min(POLL_SECONDS, left)), producer, target)
        producer.flush(TIMEOUT_SECONDS)  # without it the coordinator turns the offsets away for 100 ms
        offsets = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(
            [offset for offset in offsets if offset.offset >= 0], consumer.consumer_group_metadata(), TIMEOUT_SECONDS
        )
        producer.commit_transaction(TIMEOUT_SECONDS)


def _copy(messages: Sequence[Message], producer: Producer, target: str) -> None:
    produce = producer.produce
    for message in messages:
        if message.error() is not None:
            continue
        while True:
            try:
                produce(target, message.value(), message.key(), -1, None, None, 0, message.headers())
                break
            except BufferError:
                producer.poll(0.01)
    producer.poll(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.processes.null_relay", description="Consume and produce, no more."
    )
    for name in ("--bootstrap-servers", "--source", "--target", "--group"):
        parser.add_argument(name, required=True)
    parser.add_argument("--transactional-id")
    return parser


if __name__ == "__main__":
    main()
