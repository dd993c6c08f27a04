"""The command `cancel`, here and in kubectl: end pending schedules by their ids."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

import click

from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import At, Reach, at_topic
from delaytopic_gateway.client.time_text import duration
from delaytopic_gateway.reach.cancelling import Cancelled, Cancelling, exit_code, summary
from delaytopic_process.command_line import echo
from delaytopic_process.errors import InputError

LONGEST_ID_BYTES = 256
_HELP: Final = """\
Cancel what is pending in a DelayTopic with these IDs, wherever in it they wait.

Without an ID, the lines of the standard input are the ids.
{way}

\b
Exit code, the highest of all ids:
  0  nothing with the id is pending any more
  7  nothing with the id was pending, or it ended first: delivered, dead-lettered or replaced
  8  not known yet: relays have not read the cancel

\b
Examples:
  {program} cancel {topic} order-17 order-18
  {program} cancel {topic} order-17 --wait 30s
  {program} cancel {topic} < ids.txt
"""
_WAY: Final = """
TOPIC is the source topic, or the DelayTopic's name. Its gateway finds where each id waits, and writes the cancel there.
With --bootstrap-servers it is written to that Kafka: where the relays that --relay names say that the id waits, and
into all partitions where they do not know it, or nobody is there to be asked. Beside its own, a cancel does nothing.
"""


def cancel_command(with_reach: At, program: str, topic: str, way: str = "") -> click.Command:
    """Return the command for DelayTopics that `with_reach` finds; `way` tells who finds and writes."""

    @click.command(
        "cancel",
        short_help="Cancel pending records by their ids.",
        help=_HELP.format(program=program, topic=topic, way=way),
    )
    @with_reach
    @click.argument("ids", nargs=-1, metavar="[ID]...")
    @click.option("--no-wait", is_flag=True, help="Do not wait until relays have read the cancels.")
    @click.option(
        "--wait",
        metavar="DURATION",
        default="5s",
        show_default=True,
        help="Wait so long for what became of each: who won, where the DelayTopic has outcomes.",
    )
    @OUTPUT
    def cancel(reach: Reach, ids: tuple[str, ...], no_wait: bool, wait: str, output: str | None) -> int:
        wait_s, names = duration(wait).ms / 1_000, _ids_of(ids)
        with reach() as found:
            relays = found if found.asks_relays else None
            ended = Cancelling(relays, found, wait=not no_wait, wait_s=wait_s, say=_say).cancel_all(names)
        if relays is None and not no_wait:
            _say("none is named; give --relay, or a gateway with --gateway")
        show(output, {"ids": [each.to_json() for each in ended]}, _lines(ended))
        return exit_code(ended, waited=not no_wait)

    return cancel


cancel = cancel_command(at_topic(relays=True, kafka=True, outcomes=True), "delaytopic", "shop.reminders.delayed", _WAY)


def _say(why: str) -> None:
    echo(f"relays were not asked: {why}", err=True)


def _lines(ended: Sequence[Cancelled]) -> Iterator[str]:
    now_ms = time.time_ns() // 1_000_000
    yield from (f"{each.name}: {each.sentence(now_ms)}" for each in ended)
    if len(ended) != 1:
        yield summary(ended)


def _ids_of(given: Sequence[str]) -> list[str]:
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
