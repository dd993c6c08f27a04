"""`python -m bench.recurring SOURCE TARGET`: how late occurrences are, of many records that recur, on a running relay.

Each record has the same interval, and a slot of its own within it, so that occurrences come evenly. Every occurrence is
looked for: one that is missing, or there twice, ends it with an error. Kafka and relay are those of `delaytopic local`,
or of a cluster.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta

import click
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from bench.clock import now_ms
from bench.figures.statistics import lateness_of
from delaytopic.client import DelayedTopic
from delaytopic_api import Duration
from delaytopic_api.records import OCCURRENCE, RECEIPT, Receipt
from delaytopic_api.recurrence import Occurrence
from delaytopic_gateway.client.kafka_clients import headers_of

LEAD_MS, AFTER_S = 10_000, 5.0
PREFIX = "recurring-"


@click.command()
@click.argument("source")
@click.argument("target")
@click.option("-b", "--bootstrap-servers", required=True)
@click.option("--records", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--every", default="1m", show_default=True, help="The interval of each record.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Occurrences of each record.")
def main(source: str, target: str, bootstrap_servers: str, records: int, every: str, rounds: int) -> None:
    """Schedule, consume for so many rounds, and print lateness and rate."""
    interval_ms = Duration(every).ms
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20})
    delayed = DelayedTopic(producer, source)
    consumer = _consumer(bootstrap_servers, target)
    first_ms = int(now_ms()) + LEAD_MS + records // 10
    for number in range(records):
        begin_ms = first_ms + number * interval_ms // records
        interval = timedelta(milliseconds=interval_ms)
        while True:
            try:
                delayed.schedule(b"x", id=f"{PREFIX}{number}", every=interval, begin=begin_ms, count=rounds)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()
    click.echo(f"scheduled {records:,} records, {(first_ms - now_ms()) / 1_000:.1f} s before the first is due")
    seen: Counter[tuple[bytes, int]] = Counter()
    late_ms: list[int] = []
    give_up_s = time.monotonic() + (first_ms - now_ms() + interval_ms * rounds) / 1_000 + 60
    while len(seen) < records * rounds and time.monotonic() < give_up_s:
        for message in consumer.consume(10_000, 0.2):
            _note(message, seen, late_ms)
    consumer.close()
    missing, twice = records * rounds - len(seen), sum(number - 1 for number in seen.values())
    if missing or twice:
        raise click.ClickException(f"{missing:,} occurrences are missing, and {twice:,} came twice")
    found = lateness_of(late_ms)
    click.echo(f"{len(seen):,} occurrences, {records * 1_000 / interval_ms:,.0f} a second: {found}")


def _note(message: Message, seen: Counter[tuple[bytes, int]], late_ms: list[int]) -> None:
    headers = dict(headers_of(message))
    key = message.key()
    if message.error() is not None or not isinstance(key, bytes) or not key.startswith(PREFIX.encode()):
        return
    receipt = Receipt.parse(headers.get(RECEIPT))
    occurrence = Occurrence.parse(headers.get(OCCURRENCE), receipt.due_ms)
    if occurrence is not None:
        seen[key, occurrence.nominal_ms] += 1
        late_ms.append(message.timestamp()[1] - receipt.due_ms)


def _consumer(bootstrap_servers: str, target: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "delaytopic-bench-recurring",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(target, timeout=10).topics[target].partitions
    ends = [consumer.get_watermark_offsets(TopicPartition(target, each), timeout=10)[1] for each in partitions]
    consumer.assign([TopicPartition(target, each, end) for each, end in zip(partitions, ends, strict=True)])
    return consumer


if __name__ == "__main__":
    main()
