"""`kubectl delaytopic get`, `reschedule` and `cancel`: pending records by their ids, through the cluster's gateway."""

from __future__ import annotations

from typing import Any

import click

from delaytopic_api.relay import DEFAULT_LIMIT, PendingRecord
from delaytopic_cli.commands.cancel import NO_WAIT, ids_of, run_cancels
from delaytopic_cli.commands.records import OUTPUT, PARTITION, Reach, move, move_options, show_record
from delaytopic_cli.kubectl.client import Kubectl
from delaytopic_cli.kubectl.delay_topic import Document, delay_topic, full_name, with_kubectl
from delaytopic_cli.kubectl.gateway import Gateways, NoGateway, at_gateway, with_gateway
from delaytopic_cli.kubectl.pending import ask_pods, running_pods
from delaytopic_gateway.client.cancelling import ThroughGateway
from delaytopic_gateway.client.pending import report
from delaytopic_gateway.errors import ConflictError, RecordMissingError, RelayUnreachableError
from delaytopic_process.command_line import echo


@click.command(short_help="Show a pending record by its id.")
@click.argument("name")
@click.argument("schedule_id", metavar="ID")
@PARTITION
@OUTPUT
@with_kubectl
@with_gateway
def get(
    name: str, schedule_id: str, partition: int | None, output: str | None, kubectl: Kubectl, gateways: Gateways
) -> None:
    """Show the pending record of a DelayTopic with this ID: when it is due, its key, value and headers.

    The gateway answers, as far as your token may see. Where none is installed, the relays do, as with pending, and
    without key, value and headers.

    \b
    Examples:
      kubectl delaytopic get order-reminders order-17 -n shop
      kubectl delaytopic get order-reminders order-17 -o json \\
          --token-file <(kubectl create token reader -n shop)
    """
    document = delay_topic(kubectl, name)
    try:
        with gateways.topic(document) as topic:
            found = topic.record(schedule_id, partition)
    except NoGateway as reason:
        echo(f"{reason}; so the relays are asked, and key, value and headers are left out", err=True)
        found = _of_relays(kubectl, document, schedule_id, partition)
    show_record(found, output)


@click.command(short_help="Give a pending record another time.")
@at_gateway
@move_options
def reschedule(reach: Reach, **asked: Any) -> None:
    """Give the pending record of a DelayTopic with this ID another time; key, value and headers stay.

    What is due within five seconds is not moved: it is about to be delivered.

    \b
    Examples:
      kubectl delaytopic reschedule order-reminders order-17 --after 2h -n shop
      kubectl delaytopic reschedule order-reminders order-17 --now
    """
    move(reach, **asked)


@click.command(short_help="Cancel pending records by their ids.")
@at_gateway
@click.argument("ids", nargs=-1, metavar="[ID]...")
@NO_WAIT
@OUTPUT
def cancel(reach: Reach, ids: tuple[str, ...], no_wait: bool, output: str | None) -> int:
    """Cancel what is pending in a DelayTopic with these IDs, wherever in it they wait.

    Without an ID, the lines of the standard input are the ids.

    \b
    Exit code, the highest of all ids:
      0  nothing with the id is pending any more
      7  nothing with the id was pending, or it was due too soon
      8  not known yet: relays have not read the cancel

    \b
    Examples:
      kubectl delaytopic cancel order-reminders order-17 order-18 -n shop
      kubectl delaytopic cancel order-reminders < ids.txt
    """
    names = ids_of(ids)
    with reach() as topic:
        through = ThroughGateway(topic)
        return run_cancels(through, through, names, no_wait=no_wait, output=output)


def _of_relays(kubectl: Kubectl, document: Document, schedule_id: str, partition: int | None) -> PendingRecord:
    """Return what relays tell of the pending record with an id.

    Raises `RecordMissingError`, `ConflictError` and `RelayUnreachableError`.
    """
    place = full_name(document)
    here = {} if partition is None else {"partition": partition}
    answers = ask_pods(kubectl, running_pods(kubectl, document), {"id": schedule_id, **here})
    found = report(place, answers, DEFAULT_LIMIT)
    if len(found.records) > 1:
        partitions = ", ".join(str(record.partition) for record in found.records)
        raise ConflictError(f"the id {schedule_id} waits in partitions {partitions}: say which with --partition")
    if found.records:
        return found.records[0].model_copy(update={"key": None, "key_base64": None})
    if not found.complete:
        raise RelayUnreachableError(f"not all of {place} could be searched: {'; '.join(found.notes)}")
    raise RecordMissingError(
        f"no record with id {schedule_id} is pending in {place}; it was delivered, cancelled or never there"
    )
