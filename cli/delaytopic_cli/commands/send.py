"""`delaytopic send`: produce records that are delivered later."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import click

from delaytopic_api.records import DELIVER_AT, DELIVER_EXPIRES_AT, DELIVER_ID, Headers
from delaytopic_api.recurrence import Missed
from delaytopic_cli.commands.options import client_settings, kafka_options, known_topics, split_pair
from delaytopic_gateway.client.kafka_clients import partitions_of, producer
from delaytopic_gateway.client.new_records import (
    Addressing,
    KeyedValue,
    Timing,
    generated_values,
    records_to_send,
    values_of_lines,
)
from delaytopic_gateway.client.recurring import RecurrenceOptions, explained
from delaytopic_gateway.client.sending import Interruption, Sending, Sent
from delaytopic_gateway.client.time_text import clock_text, duration, instant_ms
from delaytopic_local.session.known_topics import KnownTopic, objection, warnings
from delaytopic_process.command_line import INTERRUPTED, NearChoice, echo, warn
from delaytopic_process.errors import InputError


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The options as they were given; each is explained at its declaration."""

    after: str | None
    at: str | None
    spread: str | None
    schedule_id: str | None
    key: str | None
    headers: tuple[str, ...]
    to: str | None
    count: int | None
    value: str | None
    key_separator: str | None
    recurrence: RecurrenceOptions
    output: str
    bootstrap_servers: str | None
    settings: tuple[str, ...]


@click.command(short_help="Send records that are delivered at their own time.")
@click.argument("topic")
@click.option("--after", metavar="DURATION", help="Deliver after this time: 90s, 1h30m, 250ms.")
@click.option(
    "--at",
    metavar="TIME",
    help="Deliver at this time: epoch milliseconds, or RFC 3339 with an offset; without one the clocks of --tz count.",
)
@click.option(
    "--spread", metavar="DURATION", help="Spread the due times evenly over this span, from --at or --after on."
)
@click.option("--id", "schedule_id", metavar="ID", help="Name the schedule, to replace or cancel it. {n}: its number.")
@click.option("--key", metavar="KEY", help="The records' key. {n}: the record's number. Default: the id.")
@click.option("--header", "headers", metavar="KEY=VALUE", multiple=True, help="A header of your own. Repeatable.")
@click.option("--to", metavar="TOPIC", help="Deliver to this topic instead, if the DelayTopic allows it.")
@click.option("--cron", metavar="EXPRESSION", help="Deliver again and again: '0 9 * * mon-fri'. Needs an --id.")
@click.option("--every", metavar="DURATION", help="Deliver again and again, at this interval. Needs an --id.")
@click.option("--ladder", metavar="DURATIONS", help="Deliver so long before --at: 7d,1d,0s. Needs an --id.")
@click.option("--tz", metavar="ZONE", help="The zone of --cron, of --at without an offset, and of --ladder's days.")
@click.option("--from", "begin", metavar="TIME", help="No occurrence before this time.")
@click.option("--until", metavar="TIME", help="No occurrence after this time.")
@click.option("--times", type=click.IntRange(min=1), help="The number of occurrences.")
@click.option("--jitter", metavar="DURATION", help="Put each occurrence off by less than this.")
@click.option("--missed", type=click.Choice([*Missed]), help="What becomes of times that are past already.")
@click.option("--catch-up", metavar="DURATION", help="How far back --missed All goes.")
@click.option("--count", type=click.IntRange(min=1), help="Send this many generated records; reads no input.")
@click.option("--value", metavar="TEXT", help="The value instead of an input. {n}: the record's number.")
@click.option("--key-separator", metavar="TEXT", help=r"Input lines are KEY, this text, VALUE. \t is a tab.")
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", help="How to print the summary.")
@kafka_options
def send(topic: str, **options: Any) -> int:
    """Send records to a source TOPIC; they appear on its target topic when they are due.

    Each line of the standard input is the value of one record. After Ctrl-C, or a line that cannot be sent, the number
    of those that were sent is printed: go on with the line behind them.

    \b
    Examples:
      echo 'tea is ready' | delaytopic send shop.reminders.delayed --after 3m
      delaytopic send shop.reminders.delayed --at 2027-01-01T00:00:00+01:00 --value 'happy new year'
      delaytopic send shop.reminders.delayed --after 1h --id order-17 --value 'pay your order'
      delaytopic send shop.reminders.delayed --id report --cron '0 9 * * mon-fri' --tz Europe/Berlin --value report
      delaytopic send shop.reminders.delayed --id stay-8 --at 2027-03-28T15:00:00Z --ladder 7d,1d,1h --value 'your stay'
      delaytopic send shop.reminders.delayed --count 10000 --spread 1m
      delaytopic send shop.reminders.delayed --after 5s --key-separator '\\t' < keyed-lines.tsv
    """
    rules = {field.name: options.pop(field.name) for field in fields(RecurrenceOptions)}
    chosen = SendOptions(**options, recurrence=RecurrenceOptions(**rules))
    client = client_settings(chosen.bootstrap_servers, chosen.settings)
    timing = _timing(chosen, now_ms=_now_ms())
    own_headers = tuple(map(_own_header, chosen.headers))
    addressing = Addressing(chosen.key, chosen.schedule_id, chosen.to, own_headers)
    _check(topic, known_topics(client), timing, addressing)
    values, total = _values(chosen, whole=timing.spread_ms is not None)
    partitions_of(client, topic)
    sending = Sending(producer(client, topic), topic, report=_report)
    with Interruption() as interruption:
        sent = sending.send_all(records_to_send(values, addressing, timing, total=total), interruption)
    as_json = chosen.output == "json"
    echo(json.dumps({"topic": topic, **sent.to_json()}) if as_json else summary(topic, sent, now_ms=_now_ms()))
    return INTERRUPTED if sent.interrupted else 0


def _own_header(text: str) -> tuple[str, str]:
    """Return a header as it is given; what relays refuse may be sent on purpose, a time in seconds may not."""
    name, value = split_pair(text, "--header")
    if name in (DELIVER_AT, DELIVER_EXPIRES_AT) and value.isdecimal():
        try:
            instant_ms(value)
        except InputError as error:
            raise InputError(f"--header: {name}: {error}") from error
    return name, value


def _check(topic: str, known: Sequence[KnownTopic], timing: Timing, addressing: Addressing) -> None:
    reason = objection(topic, known, timing, addressing, now_ms=_now_ms())
    if reason is not None:
        raise InputError(reason)
    for text in warnings(topic, known, addressing):
        warn(text)


def _timing(chosen: SendOptions, *, now_ms: int) -> Timing:
    """Return the time of delivery, or the rule of what recurs; raises InputError."""
    rule = chosen.recurrence.headers()
    if not rule:
        return timing_of(after=chosen.after, at=chosen.at, spread=chosen.spread, now_ms=now_ms)
    if chosen.after is not None or chosen.spread is not None:
        raise InputError("--after and --spread do not go with a rule or a zone: leave them out")
    if chosen.schedule_id is None:
        raise InputError("what recurs, or is due by the clocks of a zone, needs a name to end it by: add --id")
    headers: Headers = [*([(DELIVER_AT, chosen.at.encode())] if chosen.at is not None else []), *rule]
    explained(dict([*headers, (DELIVER_ID, chosen.schedule_id.encode())]), now_ms, most=1)
    return Timing(recurrence=tuple(headers))


def timing_of(*, after: str | None, at: str | None, spread: str | None, now_ms: int) -> Timing:
    """Return the time of delivery from the options; raises InputError."""
    if after is not None and at is not None:
        raise InputError("set --after or --at, not both")
    delay = duration(after) if after is not None else None
    at_ms = instant_ms(at) if at is not None else None
    if spread is None:
        return Timing(at_ms=at_ms, after=delay)
    start_ms = at_ms if at_ms is not None else now_ms + (delay.ms if delay is not None else 0)
    return Timing(at_ms=start_ms, spread_ms=duration(spread).ms)


def summary(topic: str, sent: Sent, *, now_ms: int) -> str:
    """Return one line for people."""
    records = "1 record" if sent.records == 1 else f"{sent.records:,} records"
    what = f"interrupted, sent {records}" if sent.interrupted else f"sent {records}"
    first, last = (clock_text(due, now_ms=now_ms) for due in (sent.first_due_ms, sent.last_due_ms))
    if sent.first_due_ms is None:
        return f"{what} to {topic}"
    when = f"due at {first}" if first == last else f"due from {first} to {last}"
    return f"{what} to {topic}, {when}"


def _values(options: SendOptions, *, whole: bool) -> tuple[Iterable[KeyedValue], int | None]:
    """Return the values, and how many they are when that is known; `whole` reads all of the input to know."""
    if options.count is not None or options.value is not None:
        return generated_values(options.count or 1, options.value), options.count or 1
    if sys.stdin.isatty():
        echo("reading values from the standard input, one a line; Ctrl-D ends", err=True)
    separator = options.key_separator.replace("\\t", "\t") if options.key_separator else None
    values = values_of_lines(sys.stdin.buffer, separator)
    if not whole:
        return values, None
    known = list(values)
    return known, len(known)


def _report(records: int) -> None:
    if sys.stderr.isatty():
        echo(f"{records:,} sent ...", err=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
