"""`delaytopic watch`: see delivered records as they arrive."""

from __future__ import annotations

import shutil
import time

import click
from confluent_kafka import OFFSET_END, Consumer, KafkaException, Message

from delaytopic_cli.commands.options import client_settings, kafka_options
from delaytopic_gateway.client.kafka_clients import (
    FIRST_OFFSET,
    assignment,
    committed_reader,
    headers_of,
    partitions_of,
)
from delaytopic_gateway.client.watching import Arrival, json_line, receipt_of, table_head, table_line
from delaytopic_gateway.errors import KafkaUnreachableError
from delaytopic_process.command_line import NearChoice, echo, echo_lines


@click.command(short_help="Watch delivered records arrive.")
@click.argument("topic")
@click.option("--from-beginning", is_flag=True, help="Show what is there already, too.")
@click.option("--limit", type=click.IntRange(min=1), help="End after this many records.")
@click.option("-o", "--output", type=NearChoice(["table", "json"]), default="table", help="Lines for people or JSON.")
@kafka_options
def watch(
    topic: str,
    from_beginning: bool,
    limit: int | None,
    output: str,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """Watch a target TOPIC: each record with its due time, how long after it was sent and arrived, key and value.

    SENT is what the relay wrote into the record, by its clock; ARRIVED is when this command read it, by the clock of
    this machine, and a dash for records that were there before. Only committed records are shown, as a read_committed
    consumer sees them. Ctrl-C ends.

    \b
    Examples:
      delaytopic watch shop.reminders
      delaytopic watch shop.reminders --from-beginning --limit 10 -o json
    """
    client = client_settings(bootstrap_servers, settings)
    partitions = partitions_of(client, topic)
    consumer = committed_reader(client)
    try:
        consumer.assign(assignment(topic, partitions, FIRST_OFFSET if from_beginning else OFFSET_END))
        if output == "table":
            echo_lines(table_head())
        _show(consumer, limit, as_json=output == "json")
    except KeyboardInterrupt:
        echo(err=True)
    finally:
        consumer.close()


def _show(consumer: Consumer, limit: int | None, *, as_json: bool) -> None:
    """Print arrivals until the limit is reached, if there is one."""
    started_ms, shown = _now_ms(), 0
    while limit is None or shown < limit:
        first = consumer.poll(0.2)
        if first is None:
            continue
        # What is there already, without waiting for more: that would count as the record's own time.
        messages = [first, *consumer.consume(499, 0)]
        now_ms, width = _now_ms(), shutil.get_terminal_size((140, 24)).columns
        for message in messages[: None if limit is None else limit - shown]:
            arrival = _arrival(message, started_ms, now_ms)
            echo(json_line(arrival) if as_json else table_line(arrival, now_ms=now_ms, width=width))
            shown += 1


def _arrival(message: Message, started_ms: int, now_ms: int) -> Arrival:
    error = message.error()
    if error is not None:
        raise KafkaUnreachableError(f"reading stopped: {error.str()}") from KafkaException(error)
    return Arrival(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        arrived_ms=now_ms if message.timestamp()[1] >= started_ms else None,
        key=message.key(),
        value=message.value(),
        receipt=receipt_of(headers_of(message)),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
