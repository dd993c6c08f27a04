"""`delaytopic dead-letters`: list what could not be delivered, and send it again."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import islice
from typing import Any

import click

from delaytopic_api.records import DeadLetterReason
from delaytopic_cli.commands.options import client_settings, kafka_options
from delaytopic_cli.commands.send import timing_of
from delaytopic_gateway.client.dead_letters import (
    Choice,
    Place,
    SecondSending,
    StoredRecord,
    dead_letters_text,
    json_line,
    shown_reason,
    summary,
    table_head,
    table_line,
)
from delaytopic_gateway.client.resending import Resending, read_all
from delaytopic_process.command_line import INTERRUPTED, NearChoice, echo
from delaytopic_process.errors import InputError, ProgramError

_reasons = click.option(
    "--reason",
    "reasons",
    metavar="REASON",
    multiple=True,
    type=NearChoice([str(reason) for reason in DeadLetterReason]),
    help="Only dead letters of this reason, such as malformed-header. Repeatable.",
)


@click.group("dead-letters", short_help="List dead letters, and send them again.")
def dead_letters() -> None:
    """See why records could not be delivered, and send them again.

    \b
    Examples:
      delaytopic dead-letters list shop.reminders.delayed.dlq
      delaytopic dead-letters resend shop.reminders.delayed.dlq 0:17 --after 5m
    """


@dead_letters.command("list", short_help="List dead letters with their reasons.")
@click.argument("topic")
@_reasons
@click.option("--limit", type=click.IntRange(min=1), help="The first so many.")
@click.option("-o", "--output", type=NearChoice(["table", "json"]), default="table", help="Lines for people or JSON.")
@kafka_options
def list_(
    topic: str,
    reasons: tuple[str, ...],
    limit: int | None,
    output: str,
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
) -> None:
    """List the dead letters that a dead-letter TOPIC has now: place, time, reason, size of the value, key, source.

    JSON has a line for each, with key, value and headers.

    \b
    Examples:
      delaytopic dead-letters list shop.reminders.delayed.dlq
      delaytopic dead-letters list shop.reminders.delayed.dlq --reason malformed-header --limit 10 -o json
    """
    choice, counts = Choice(frozenset(reasons)), Counter[str]()
    records = read_all(client_settings(bootstrap_servers, settings), topic)
    if output == "table":
        echo(table_head())
    for record in islice((each for each in records if choice.takes(each.letter)), limit):
        counts[shown_reason(record)] += 1
        echo(json_line(record) if output == "json" else table_line(record, now_ms=_now_ms()))
    if output == "table":
        echo(summary(counts))


@dead_letters.command("resend", short_help="Send dead letters to their source topic again.")
@click.argument("topic")
@click.argument("places", nargs=-1, metavar="[PARTITION:OFFSET]...")
@click.option("--all", "everything", is_flag=True, help="Everything that --all has not sent before.")
@_reasons
@click.option("--to", metavar="TOPIC", help="Send to this topic, not to the one that each came from.")
@click.option("--after", metavar="DURATION", help="Deliver after this time instead of their own: 90s, 1h30m.")
@click.option("--at", metavar="TIME", help="Deliver at this time instead: epoch milliseconds or RFC 3339.")
@click.option("--dry-run", is_flag=True, help="Show what would be sent, and send nothing.")
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", help="How to print the summary.")
@kafka_options
def resend(
    topic: str,
    places: tuple[str, ...],
    everything: bool,
    reasons: tuple[str, ...],
    dry_run: bool,
    output: str,
    **options: Any,
) -> None:
    """Send dead letters of a dead-letter TOPIC again: to the source topic and partition that each came from.

    Key, value and headers are the record's own. A delay counts from now. --after and --at take the place of
    deliver-at, deliver-after and deliver-expires-at.

    --all remembers what it has sent, each reason for itself, in a consumer group: killed and started again, or
    started again for what has come since, it sends each once. Places are sent together, whether sent before or not, and
    --all leaves them out afterwards.

    \b
    Examples:
      delaytopic dead-letters resend shop.reminders.delayed.dlq 0:17 0:19 --after 5m
      delaytopic dead-letters resend shop.reminders.delayed.dlq --all --reason unknown-target --dry-run
    """
    if everything == bool(places):
        raise InputError("name places such as 0:17, or all with --all; not both")
    chosen = [Place.parse(place) for place in places]
    after, at = options["after"], options["at"]
    timing = timing_of(after=after, at=at, spread=None, now_ms=_now_ms()) if (after, at) != (None, None) else None
    choice = Choice(frozenset(reasons), options["to"], timing)

    def show(record: StoredRecord, sending: SecondSending) -> None:
        if dry_run and output == "text":
            partition = "by key" if sending.partition is None else f"partition {sending.partition}"
            echo(f"{record.place} to {sending.topic}, {partition}")

    client = client_settings(options["bootstrap_servers"], options["settings"])
    resending = Resending(client, topic, choice, dry_run=dry_run, show=show)
    try:
        resending.send_all() if everything else resending.send_places(chosen)
    except ProgramError as error:
        if not resending.has_begun:
            raise
        raise type(error)(f"{error}\n{_how_to_go_on(resending, everything=everything)}") from error
    except KeyboardInterrupt:
        if resending.has_begun:
            echo(_how_to_go_on(resending, everything=everything), err=True)
        raise SystemExit(INTERRUPTED) from None
    _report(resending, topic, dry_run=dry_run, as_json=output == "json")


def _how_to_go_on(resending: Resending, *, everything: bool) -> str:
    outcome, said = resending.outcome, resending.outcome.certain
    if everything:
        return f"{said}; the same command goes on behind what was sent"
    return f"{said}; " + ("look into the source topic before" if outcome.in_doubt else "give the same command again")


def _report(resending: Resending, topic: str, *, dry_run: bool, as_json: bool) -> None:
    """Print how many were sent; raises ProgramError if some were not, as they are not complete."""
    outcome = resending.outcome
    if as_json:
        incomplete = [
            {"partition": place.partition, "offset": place.offset, "reason": why}
            for place, why in outcome.incomplete.items()
        ]
        sent = {"dryRun": dry_run, "sent": outcome.sent.total(), "to": dict(outcome.sent), "incomplete": incomplete}
        echo(json.dumps({"topic": topic, **sent}, ensure_ascii=False))
    else:
        whence = ", from the first on" if outcome.from_first else ""
        whither = "".join(f", {count:,} to {each}" for each, count in sorted(outcome.sent.items()))
        echo(f"{'would send' if dry_run else 'sent'} {dead_letters_text(outcome.sent.total())} again{whence}{whither}")
    for place, why in outcome.incomplete.items():
        echo(f"not sent: {place}: {why}", err=True)
    if outcome.incomplete:
        raise ProgramError(f"{dead_letters_text(len(outcome.incomplete))} cannot be sent again from here")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
