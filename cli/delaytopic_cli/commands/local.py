"""`delaytopic local`: run DelayTopics on this machine."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import click

from delaytopic_cli.commands.options import split_pair
from delaytopic_process.command_line import NearChoice
from delaytopic_process.errors import InputError


def _checked_name(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    if name is not None and not re.fullmatch("[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?", name):
        raise InputError("--name takes up to 40 lower-case letters, digits and hyphens")
    return name


@click.command(short_help="Run DelayTopics on this machine, with real Kafka and Redis.")
@click.option(
    "-f",
    "--file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML with one or more DelayTopics, and their DelayClasses if they name any.",
)
@click.option("--bootstrap-servers", "-b", metavar="HOST:PORT,...", help="A Kafka of yours. Default: an embedded one.")
@click.option(
    "-X",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    callback=lambda _context, _parameter, pairs: tuple(split_pair(pair, "-X") for pair in pairs),
    help="A setting for your Kafka, such as security.protocol=SASL_SSL; a password is kept out of logs. Repeatable.",
)
@click.option("--redis-url", metavar="URL", help="A Redis of yours. Default: an embedded one.")
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the embedded servers' data and ports here for the next time. Default: a folder deleted at the end.",
)
@click.option("--relays", default=1, show_default=True, type=click.IntRange(1, 64), help="Relays for each DelayTopic.")
@click.option(
    "--http-port",
    default=0,
    type=click.IntRange(0, 65_000),
    help="Port of the first relay's pages, the others' follow. Default: free ones.",
)
@click.option(
    "--gateway-port",
    default=0,
    type=click.IntRange(0, 65_535),
    help="Port of console and REST. Default: a free one.",
)
@click.option(
    "--name",
    metavar="NAME",
    callback=_checked_name,
    help="What other commands call this one, where several run: see their --local. Default: local, local-2, ...",
)
@click.option(
    "--clock",
    type=NearChoice(["machine", "manual"]),
    default="machine",
    show_default=True,
    help="For tests of an application: manual has a clock that `delaytopic clock advance` moves ahead.",
)
@click.option(
    "--accept-source",
    metavar="TOPIC_ID",
    help="Have relays whose source was made anew begin with the topic of this id, which their status names.",
)
@click.option(
    "--accept-repeats",
    metavar="TIME",
    help="Until this time, such as 2026-11-26T22:00:00Z, have relays whose offsets are gone begin again.",
)
def local(**options: Any) -> None:
    """Run the DelayTopics of a file on this machine until Ctrl-C.

    Creates their topics, starts their relays, and shows how they do: a live table on a terminal, a line a second
    elsewhere. While it runs, `send`, `cancel`, `watch` and `pending` find it by themselves.

    The first run downloads Apache Kafka (43 MB) into your cache; Java comes with the Python packages.

    \b
    Examples:
      delaytopic local -f examples/reminders.yaml
      delaytopic local -f examples/reminders.yaml --data ~/delaytopic-data --relays 2
      delaytopic local -f examples/reminders.yaml --clock manual
      delaytopic local -f examples/reminders.yaml -b broker-1:9092 --redis-url redis://cache:6379/3
    """
    from rich.console import Console  # noqa: PLC0415  # the help does not wait for what serves the console

    from delaytopic_local.session.session import LocalOptions, run_local  # noqa: PLC0415

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run_local(LocalOptions(**options), Console())
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
