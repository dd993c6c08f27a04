"""`delaytopic explain`: what headers mean, from the rule to the instants, without a Kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from delaytopic_api.records import rfc_3339
from delaytopic_cli.commands.options import split_pair
from delaytopic_cli.commands.output import show
from delaytopic_gateway.client.recurring import SHOWN, Explained, explained
from delaytopic_gateway.client.time_text import instant_ms
from delaytopic_process.command_line import NearChoice


@click.command(short_help="Tell when a record with some headers is delivered.")
@click.argument("headers", metavar="HEADER=VALUE...", nargs=-1, required=True)
@click.option("--timestamp", metavar="TIME", help="The record's timestamp. Default: now.")
@click.option("--next", "most", type=click.IntRange(1, 1000), default=SHOWN, show_default=True, help="How many.")
@click.option("-o", "--output", type=NearChoice(["text", "json"]), default="text", show_default=True)
def explain(headers: tuple[str, ...], timestamp: str | None, most: int, output: str) -> int:
    """Tell the rule that control headers say, and the next times at which a relay delivers the record.

    Nothing is asked of a Kafka or a relay. The bounds and the default delay of a DelayTopic are not known here, and
    the zones are those of this machine. Exit codes: 0 told, 2 a relay would refuse the headers.

    \b
    Examples:
      delaytopic explain deliver-id=report deliver-cron='0 9 * * mon-fri' deliver-tz=Europe/Berlin
      delaytopic explain deliver-id=stay deliver-at=2027-03-28T15:00:00 deliver-tz=Europe/Berlin deliver-ladder=7d,1d
    """
    pairs = [split_pair(each, "explain") for each in headers]
    timestamp_ms = instant_ms(timestamp) if timestamp is not None else time.time_ns() // 1_000_000
    found = explained({name: value.encode() for name, value in pairs}, timestamp_ms, most=most)
    document = {"timestampMs": timestamp_ms, **found.to_json()}
    show(output, document, _lines(pairs, timestamp_ms, found))
    return 0


def _lines(pairs: list[tuple[str, str]], timestamp_ms: int, found: Explained) -> Iterator[str]:
    for name, value in pairs:
        yield f"{name}: {value}"
    yield f"timestamp: {rfc_3339(timestamp_ms)}"
    yield f"rule: {found.words}"
    for each in found.occurrences:
        put_off = f", put off by {each.due_ms - each.nominal_ms} ms" if each.due_ms != each.nominal_ms else ""
        number = f"{each.number}. " if found.recurs else "due: "
        local = f"{found.local(each.due_ms)} = " if found.zone != "UTC" else ""
        yield f"{number}{local}{rfc_3339(each.due_ms)}{put_off}"
