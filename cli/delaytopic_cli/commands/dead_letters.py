"""The commands of `dead-letters`, here and in kubectl: list what could not be delivered, and send it again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import click

from delaytopic_api.records import DeadLetterReason
from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import At, Reach, at_topic
from delaytopic_cli.commands.times import asked_time
from delaytopic_gateway.client.dead_letters import Place, dead_letters_text
from delaytopic_gateway.dead_letters.documents import MOST_PLACES, MOST_REASONS, Resend
from delaytopic_gateway.reach.lists import dead_letters as listed
from delaytopic_gateway.reach.lists import sent_again
from delaytopic_gateway.reach.text import dead_letter_lines, dead_letters_lines, resend_lines
from delaytopic_process.command_line import INTERRUPTED, NearChoice, echo
from delaytopic_process.errors import InputError, ProgramError

_HELP: Final = """\
See why records of a DelayTopic could not be delivered, and send them again.
{way}

\b
Examples:
  {program} dead-letters list {topic}
  {program} dead-letters show {topic} 0:17
  {program} dead-letters resend {topic} 0:17 --after 5m
"""
_LIST: Final = """\
List the dead letters of a DelayTopic, the newest first, and count their reasons. AGAIN says whether one was sent again.

Key, size and detail are shown to callers who may write: details quote headers.

\b
Examples:
  {program} dead-letters list {topic}
  {program} dead-letters list {topic} --reason malformed-header --limit 10 -o json
"""
_SHOW: Final = """\
Show a dead letter, whole: why it could not be delivered, its key, value and the headers of its producer.

\b
Examples:
  {program} dead-letters show {topic} 0:17
  {program} dead-letters show {topic} 0:17 -o json
"""
_RESEND: Final = """\
Send dead letters to the source topic again, to the partition that each came from: by their places, or --all.

Key, value and headers are the record's own; a delay counts from now. --after and --at take the place of deliver-at,
deliver-after and deliver-expires-at.

Each is sent once, whoever asks and how often: what was sent before is left out, and told. A command that was killed is
started again as it was. The exit code is 1 when some cannot be sent again from here; each is named.

\b
Examples:
  {program} dead-letters resend {topic} 0:17 0:19 --after 5m
  {program} dead-letters resend {topic} --all --reason unknown-target --dry-run
"""
_WAY: Final = """
TOPIC is the source or dead-letter topic, or the DelayTopic's name. Its gateway reads and writes, or this command itself
with --bootstrap-servers: TOPIC is then the source topic.
"""
_REASONS = click.option(
    "--reason",
    "reasons",
    metavar="REASON",
    multiple=True,
    type=NearChoice([str(reason) for reason in DeadLetterReason]),
    help="Choose only dead letters of this reason, such as malformed-header. Repeatable.",
)


def dead_letters_group(with_reach: At, program: str, topic: str, way: str = "") -> click.Group:
    """Return the commands for DelayTopics that `with_reach` finds; `way` tells who reads and writes."""
    words = {"program": program, "topic": topic, "way": way}

    @click.group("dead-letters", short_help="List dead letters, and send them again.", help=_HELP.format(**words))
    def dead_letters() -> None:
        pass

    @dead_letters.command("list", short_help="List dead letters, the newest first.", help=_LIST.format(**words))
    @with_reach
    @_REASONS
    @click.option(
        "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="List the newest so many."
    )
    @OUTPUT
    def list_(reach: Reach, reasons: tuple[str, ...], limit: int, output: str | None) -> None:
        _check_reasons(reasons)
        with reach() as found:
            page = listed(found, [*reasons], limit)
        show(output, page, dead_letters_lines(page, now_ms=_now_ms()))

    @dead_letters.command("show", short_help="Show a dead letter with what it holds.", help=_SHOW.format(**words))
    @with_reach
    @click.argument("place", metavar="PARTITION:OFFSET")
    @OUTPUT
    def show_one(reach: Reach, place: str, output: str | None) -> None:
        chosen = Place.parse(place)
        with reach() as found:
            letter = found.dead_letter(chosen)
        show(output, letter, dead_letter_lines(letter, now_ms=_now_ms()))

    @dead_letters.command(
        "resend", short_help="Send dead letters to their source topic again.", help=_RESEND.format(**words)
    )
    @with_reach
    @click.argument("places", nargs=-1, metavar="[PARTITION:OFFSET]...")
    @click.option("--all", "everything", is_flag=True, help="Send everything that was not sent again before.")
    @_REASONS
    @click.option("--after", metavar="DURATION", help="Deliver after this time instead of their own: 90s, 1h30m.")
    @click.option("--at", metavar="TIME", help="Deliver at this time instead: epoch milliseconds or RFC 3339.")
    @click.option("--dry-run", is_flag=True, help="Tell what would be sent, and send nothing.")
    @OUTPUT
    def resend(reach: Reach, places: tuple[str, ...], output: str | None, **asked: Any) -> None:
        request = _request(places, **asked)
        try:
            with reach() as found:
                result = sent_again(found, request)
        except KeyboardInterrupt:
            echo("what was sent again is remembered: the same command goes on behind it", err=True)
            raise SystemExit(INTERRUPTED) from None
        show(output, result, resend_lines(result, chosen_by_place=bool(places)))
        for each in result.incomplete:
            echo(f"not sent: {each.place}: {each.reason}", err=True)
        if result.incomplete_count:
            raise ProgramError(f"{dead_letters_text(result.incomplete_count)} cannot be sent again from here")

    return dead_letters


dead_letters = dead_letters_group(at_topic(kafka=True, dead_letter=True), "delaytopic", "shop.reminders.delayed", _WAY)


def _request(
    places: Sequence[str], everything: bool, reasons: Sequence[str], after: str | None, at: str | None, dry_run: bool
) -> Resend:
    """Return what a gateway is asked for. Raises InputError. Pure."""
    if everything == bool(places):
        raise InputError("name places such as 0:17, or all with --all; not both")
    if places and reasons:
        raise InputError("--reason chooses among all: it goes with --all, and not with places")
    if len(places) > MOST_PLACES:
        raise InputError(f"name up to {MOST_PLACES} places at a time, not {len(places)}")
    _check_reasons(reasons)
    chosen = [str(Place.parse(place)) for place in places]
    is_all = everything and not reasons
    times = asked_time(after, at)
    return Resend.model_validate({"places": chosen, "reasons": [*reasons], "all": is_all, "dry_run": dry_run, **times})


def _check_reasons(reasons: Sequence[str]) -> None:
    if len(reasons) > MOST_REASONS:
        raise InputError(f"name up to {MOST_REASONS} reasons at a time, not {len(reasons)}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
