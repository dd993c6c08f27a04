"""`delaytopic cancel`: end pending schedules by their ids."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from delaytopic_cli.commands.options import client_settings, kafka_options, running_local
from delaytopic_cli.commands.records import OUTPUT, gateway_options, is_json, named_gateway
from delaytopic_gateway.client.cancelling import (
    Cancelled,
    Cancelling,
    Commands,
    RelayPages,
    Relays,
    ThroughGateway,
    exit_code,
    summary,
)
from delaytopic_gateway.client.gateway import GatewayClient
from delaytopic_gateway.client.relay_listing import relay_url
from delaytopic_gateway.errors import RelayUnreachableError
from delaytopic_process.command_line import echo, echo_json
from delaytopic_process.errors import InputError

LONGEST_ID_BYTES = 256
NO_WAIT = click.option("--no-wait", is_flag=True, help="Do not wait until relays have read the cancels.")


@click.command(short_help="Cancel pending records by their ids.")
@click.argument("topic")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--relay",
    "relays",
    metavar="URL",
    multiple=True,
    envvar="DELAYTOPIC_RELAYS",
    show_envvar=True,
    help="The pages of a relay, to ask where ids wait. Repeatable: name all of the DelayTopic. "
    "Default: those of the running `delaytopic local`.",
)
@gateway_options
@NO_WAIT
@OUTPUT
@kafka_options
def cancel(topic: str, ids: tuple[str, ...], no_wait: bool, output: str | None, **addresses: Any) -> int:
    """Cancel what was sent to the source TOPIC with these IDs and is still pending.

    Without an ID, the lines of the standard input are the ids. Where relays or a gateway are asked, TOPIC may be the
    DelayTopic's name.

    They tell where each id waits, and the cancel is written into that partition. Of an id that they do not know yet,
    or where nobody is to be asked, it is written into all partitions: beside its own, a cancel does nothing. A gateway
    writes cancels itself, unless a Kafka is named.

    \b
    Exit code, the highest of all ids:
      0  nothing with the id is pending any more
      7  nothing with the id was pending, or it was due too soon
      8  not known yet: relays have not read the cancel

    \b
    Examples:
      delaytopic cancel shop.reminders.delayed order-17 order-18
      delaytopic cancel shop.reminders.delayed -b kafka:9092 < ids.txt
      delaytopic cancel shop/reminders order-17 --token-file token \\
          --gateway https://delays.example.com
    """
    names = ids_of(ids)
    relays, commands = Addresses(**addresses).connect(topic)
    return run_cancels(relays, commands, names, no_wait=no_wait, output=output)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The relays, the gateway and the Kafka that the command line names."""

    relays: tuple[str, ...]
    gateway: str | None
    token_file: Path | None
    bootstrap_servers: str | None
    settings: tuple[str, ...]

    def connect(self, topic: str) -> tuple[Relays | None, Commands]:
        """Return whom to ask, and what writes: a Kafka that is named, else a gateway, else all of `delaytopic local`.

        Raises `ProgramError`s.
        """
        client = named_gateway(self.gateway, self.token_file) if self.gateway is not None else None
        if client is not None and self.bootstrap_servers is None:
            if self.relays:
                raise InputError("a gateway asks relays itself: leave --relay or --gateway out")
            through = ThroughGateway(client.topic(topic))
            return through, through
        # Whoever goes through a gateway needs no Kafka client.
        from delaytopic_gateway.client.kafka_cancels import KafkaCancels  # noqa: PLC0415

        kafka = client_settings(self.bootstrap_servers, self.settings)
        if self.relays:
            pages = RelayPages(topic, [relay_url(url) for url in self.relays])
            return pages, KafkaCancels(kafka, _source_of(pages))
        if client is not None:
            found = client.topic(topic)
            return ThroughGateway(found), KafkaCancels(kafka, found.source)
        running = running_local() if self.bootstrap_servers is None else None
        if running is None or running.gateway_url is None:
            return None, KafkaCancels(kafka, topic)
        found = GatewayClient(running.gateway_url).topic(topic)
        pages = RelayPages(found.source, running.relay_urls)
        return pages if pages.urls else None, KafkaCancels(kafka, found.source)


def _source_of(pages: RelayPages) -> str:
    """Return the source topic, as far as relays can be asked for it; its name need not be that of the DelayTopic."""
    try:
        return pages.source()
    except RelayUnreachableError:
        return pages.topic


def run_cancels(
    relays: Relays | None, commands: Commands, names: Iterable[str], *, no_wait: bool, output: str | None
) -> int:
    """Cancel, and print what became of each id. Returns the exit code."""

    def say(why: str) -> None:
        echo(f"relays were not asked: {why}", err=True)

    if relays is None and not no_wait:
        say("none is named; give --relay, or a gateway with --gateway")
    ended = Cancelling(relays, commands, wait=not no_wait, say=say).cancel_all(names)
    show(ended, output)
    return exit_code(ended, waited=not no_wait)


def show(ended: Sequence[Cancelled], output: str | None) -> None:
    """Print what became of each id."""
    if is_json(output):
        echo_json({"ids": [each.to_json() for each in ended]})
        return
    for each in ended:
        echo(f"{each.name}: {each.sentence()}")
    if len(ended) != 1:
        echo(summary(ended))


def ids_of(given: Sequence[str]) -> list[str]:
    """Return the ids that were given, or those of the standard input, one a line. Raises InputError."""
    if not given and sys.stdin.isatty():
        echo("reading ids from the standard input, one a line; Ctrl-D ends", err=True)
    try:
        lines = given or [line.rstrip("\r\n") for line in sys.stdin]
    except UnicodeDecodeError as error:
        raise InputError(f"the ids on the standard input are no UTF-8 text: {error}") from error
    names = [line for line in lines if line or given]
    for name in names:
        if not 1 <= len(name.encode()) <= LONGEST_ID_BYTES:
            raise InputError(f"an id has 1 to {LONGEST_ID_BYTES} bytes, not {len(name.encode())}: {name[:40]}")
    return names
