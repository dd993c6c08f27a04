"""The command `pending`, here and in kubectl: list what waits for its time."""

from __future__ import annotations

import shutil
import time
from typing import Final

import click

from delaytopic_api.relay import DEFAULT_LIMIT, MOST_LISTED
from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import At, Reach, at_topic
from delaytopic_cli.commands.times import before_ms
from delaytopic_gateway.documents import RecordSelection
from delaytopic_gateway.reach.lists import pending_records
from delaytopic_gateway.reach.text import pending_lines

_HELP: Final = """\
List what waits in a DelayTopic, in the order of delivery. Values and headers are never shown.

Counts come from the relays' indexes; listing reads no further than it has to, and disturbs no delivery.
{way}

\b
Examples:
  {program} pending {topic}
  {program} pending {topic} --due-before 10m --limit 20 -o json
"""
_WAY: Final = """
TOPIC is the source topic, or the DelayTopic's name. Its gateway answers, or the relays that --relay names: one on
another machine answers only if its configuration says http.pending: Anywhere.
"""


def pending_command(with_reach: At, program: str, topic: str, way: str) -> click.Command:
    """Return the command for DelayTopics that `with_reach` finds; `way` tells who answers."""

    @click.command(
        "pending",
        short_help="List records that wait for their time.",
        help=_HELP.format(program=program, topic=topic, way=way),
    )
    @with_reach
    @click.option(
        "--due-before",
        metavar="TIME",
        help="List only what is due before: epoch ms, RFC 3339, or from now: 90s, 1h30m.",
    )
    @click.option(
        "--limit",
        default=DEFAULT_LIMIT,
        show_default=True,
        type=click.IntRange(0, MOST_LISTED),
        help="List the first so many; with 0, only count.",
    )
    @click.option("--partition", type=click.IntRange(min=0), help="List only this partition of the source topic.")
    @OUTPUT
    def pending(reach: Reach, due_before: str | None, limit: int, partition: int | None, output: str | None) -> None:
        now_ms = time.time_ns() // 1_000_000
        before = before_ms(due_before, now_ms=now_ms) if due_before is not None else None
        selection = RecordSelection(due_before=before, limit=limit, partition=partition)
        with reach() as found:
            page = pending_records(found, selection)
        width = shutil.get_terminal_size((140, 24)).columns
        show(output, page, pending_lines(page, of_all=before is None and limit > 0, now_ms=now_ms, width=width))

    return pending


pending = pending_command(at_topic(relays=True), "delaytopic", "shop.reminders.delayed", _WAY)
