"""`delaytopic pending`: list what waits for its time."""

from __future__ import annotations

import shutil
import sys
import time

import click

from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED
from delaytopic_cli.commands.options import local_option, running_local
from delaytopic_gateway.client.pending import report, table_lines
from delaytopic_gateway.client.relay_listing import ask_relays, relay_url
from delaytopic_gateway.client.time_text import duration, instant_ms
from delaytopic_process.command_line import NearChoice, echo, echo_json
from delaytopic_process.errors import InputError

DUE_BEFORE = click.option(
    "--due-before", metavar="TIME", help="Only what is due before: epoch ms, RFC 3339, or from now: 90s, 1h30m."
)
LIMIT = click.option(
    "--limit", default=DEFAULT_LIMIT, show_default=True, type=click.IntRange(0, MOST_LISTED), help="The first so many."
)
LIST_OUTPUT = click.option(
    "-o",
    "--output",
    type=NearChoice(["table", "json"]),
    help="For people or JSON. Default: a table on a terminal, JSON elsewhere.",
)


@click.command(short_help="List records that wait for their time.")
@click.argument("topic")
@click.option(
    "--relay",
    "relays",
    metavar="URL",
    multiple=True,
    envvar="DELAYTOPIC_RELAYS",
    show_envvar=True,
    help="The pages of a relay, such as http://10.0.0.7:8080. Repeatable: name all relays of the DelayTopic. "
    "Default: those of the running `delaytopic local`.",
)
@DUE_BEFORE
@LIMIT
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition of the source topic.")
@LIST_OUTPUT
@local_option
def pending(
    topic: str,
    relays: tuple[str, ...],
    due_before: str | None,
    limit: int,
    partition: int | None,
    output: str | None,
) -> None:
    """List what waits in a DelayTopic, in the order of delivery: TOPIC is its source topic, or its name.

    A relay lists the partitions that it owns, so ask all relays of the DelayTopic. Counts come from their indexes;
    listing reads no further than it has to, and disturbs no delivery. Values and headers are never shown.

    A relay on another machine answers only if its configuration says http.pending: Anywhere. For relays in Kubernetes
    there is kubectl delaytopic pending.

    \b
    Examples:
      delaytopic pending shop.reminders.delayed
      delaytopic pending shop.reminders.delayed --due-before 10m --limit 20
      delaytopic pending shop/order-reminders --relay http://10.0.0.7:8080 --relay http://10.0.0.8:8080 -o json
    """
    parameters = {"limit": limit}
    if due_before is not None:
        parameters["dueBefore"] = before_ms(due_before, now_ms=_now_ms())
    if partition is not None:
        parameters["partition"] = partition
    found = report(topic, ask_relays(relay_urls(relays), parameters), limit, of_all=due_before is None and limit > 0)
    if (output or ("table" if sys.stdout.isatty() else "json")) == "json":
        echo_json(found.to_json())
        return
    for line in table_lines(found, now_ms=_now_ms(), width=shutil.get_terminal_size((140, 24)).columns):
        echo(line)


def before_ms(text: str, *, now_ms: int, option: str = "--due-before") -> int:
    """Return a point in time, or a duration from now; raises InputError that names the option."""
    try:
        return instant_ms(text)
    except InputError as no_time:
        try:
            return now_ms + duration(text).ms
        except InputError:
            raise InputError(f"{option}: {no_time}; or a duration from now: 90s, 1h30m") from no_time


def relay_urls(named: tuple[str, ...]) -> list[str]:
    """Return the relays that were named, each once, or those that run here; raises InputError when there are none."""
    if named:
        return list(dict.fromkeys(map(relay_url, named)))
    running = running_local()
    if running is None:
        raise InputError("no relay: name its pages with --relay URL, or start one with: delaytopic local -f FILE")
    if not running.relay_urls:
        raise InputError("the relays of the running `delaytopic local` are not up yet: ask again in a moment")
    return list(running.relay_urls)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
