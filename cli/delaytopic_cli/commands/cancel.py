"""`delaytopic cancel`: end a pending schedule by its id."""

from __future__ import annotations

import click

from delaytopic_cli.client.kafka_clients import partitions_of, producer
from delaytopic_cli.client.sending import Sending, cancel_record
from delaytopic_cli.command_line import echo
from delaytopic_cli.commands.options import client_settings, kafka_options


@click.command(short_help="Cancel a pending record by its id.")
@click.argument("topic")
@click.argument("schedule_id", metavar="ID")
@click.option("--key", metavar="KEY", help="The key that the record was sent with. Default: the id.")
@kafka_options
def cancel(
    topic: str,
    schedule_id: str,
    key: str | None,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """Cancel what was sent to the source TOPIC with this ID and is still pending.

    The cancel travels through the topic behind the record, so it must have the record's key: the key decides
    the partition. A cancel that comes after the delivery does nothing.

    \b
    Examples:
      delaytopic cancel shop.reminders.delayed order-17
      delaytopic cancel shop.reminders.delayed order-17 --key customer-4
    """
    client = client_settings(bootstrap_servers, settings)
    partitions_of(client, topic)
    record = cancel_record(schedule_id, key)
    Sending(producer(client), topic).send_all([record])
    echo(f"sent the cancel of {schedule_id} to {topic} (key {(record.key or b'').decode()})")
