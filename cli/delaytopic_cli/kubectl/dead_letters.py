"""`kubectl delaytopic dead-letters`: what could not be delivered, listed and sent again through the gateway."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from delaytopic_cli.commands.records import OUTPUT, Reach, is_json
from delaytopic_cli.kubectl.gateway import at_gateway
from delaytopic_gateway.client.gateway import GatewayTopic
from delaytopic_gateway.client.time_text import clock_text, duration, instant_ms
from delaytopic_process.command_line import echo, echo_json
from delaytopic_process.errors import InputError, ProgramError

MOST_OF_A_PAGE = 1_000
MOST_PLACES = 100
KEY_WIDTH = 24
_TABLE = f"{{:<10}}  {{:<23}}  {{:<21}}  {{:>9}}  {{:<{KEY_WIDTH}}}  {{:<10}}  {{:<5}}  {{}}"
_reasons = click.option(
    "--reason",
    "reasons",
    metavar="REASON",
    multiple=True,
    help="Only dead letters of this reason, such as malformed-header. Repeatable.",
)


@click.group("dead-letters", short_help="List dead letters, and send them again.")
def dead_letters() -> None:
    """See why records could not be delivered, and send them again.

    \b
    Examples:
      kubectl delaytopic dead-letters list order-reminders -n shop
      kubectl delaytopic dead-letters resend order-reminders 0:17 --after 5m
    """


@dead_letters.command("list", short_help="List dead letters with their reasons, the newest first.")
@at_gateway
@_reasons
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The newest so many.")
@OUTPUT
def list_(reach: Reach, reasons: tuple[str, ...], limit: int, output: str | None) -> None:
    """List the dead letters of a DelayTopic, the newest first. AGAIN says whether it was sent again.

    Key, size and detail are shown to who may write: details quote headers.

    \b
    Examples:
      kubectl delaytopic dead-letters list order-reminders -n shop
      kubectl delaytopic dead-letters list order-reminders --limit 5 -o json
    """
    with reach() as topic:
        page = listed(topic, reasons, limit)
    if is_json(output):
        echo_json(page)
        return
    for line in table_lines(page, now_ms=time.time_ns() // 1_000_000):
        echo(line)


def listed(topic: GatewayTopic, reasons: Sequence[str], limit: int) -> dict[str, Any]:
    """Return the gateway's document of as many pages as it takes, in one."""
    whole, after = topic.dead_letters(reasons, min(limit, MOST_OF_A_PAGE), None), None
    while whole["next"] is not None and len(whole["deadLetters"]) < limit and whole["next"] != after:
        after = whole["next"]
        page = topic.dead_letters(reasons, min(limit - len(whole["deadLetters"]), MOST_OF_A_PAGE), after)
        whole = {**whole, "deadLetters": [*whole["deadLetters"], *page["deadLetters"]], "next": page["next"]}
    return whole


def table_lines(page: dict[str, Any], *, now_ms: int) -> Iterator[str]:
    """Yield a line for each dead letter, the sum of each reason, and the notes. Pure."""
    yield _TABLE.format("PLACE", "WHEN", "REASON", "BYTES", "KEY", "SOURCE", "AGAIN", "DETAIL").rstrip()
    again = {True: "yes", False: "no", None: "-"}
    for each in page["deadLetters"]:
        yield _TABLE.format(
            each["place"],
            clock_text(each["atMs"], now_ms=now_ms),
            each["reason"],
            "-" if each["valueBytes"] is None else f"{each['valueBytes']:,}",
            _key(each),
            f"{each['sourcePartition']}:{each['sourceOffset']}",
            again[each["sentAgain"]],
            each["detail"] or "-",
        ).rstrip()
    counts = Counter(page["reasons"]).most_common()
    yield ", ".join(f"{count:,} {reason}" for reason, count in counts) or "no dead letters"
    yield from page["notes"]


def _key(letter: dict[str, Any]) -> str:
    if letter["key"] is None:
        text = "-" if letter["keyBase64"] is None else f"base64:{letter['keyBase64']}"
    else:
        text = str(letter["key"])
    return text if len(text) <= KEY_WIDTH else text[: KEY_WIDTH - 1] + "…"


@dead_letters.command("resend", short_help="Send dead letters to their source topic again.")
@at_gateway
@click.argument("places", nargs=-1, metavar="[PARTITION:OFFSET]...")
@click.option("--all", "everything", is_flag=True, help="Everything that was not sent again before.")
@_reasons
@click.option("--after", metavar="DURATION", help="Deliver after this time instead of their own: 90s, 1h30m.")
@click.option("--at", metavar="TIME", help="Deliver at this time instead: epoch milliseconds or RFC 3339.")
@click.option("--dry-run", is_flag=True, help="Count what would be sent, and send nothing.")
@OUTPUT
def resend(reach: Reach, places: tuple[str, ...], output: str | None, **asked: Any) -> None:
    """Send dead letters of a DelayTopic to the source topic again, each once: what was sent before is left out.

    With --all and --reason, all of these reasons.

    \b
    Examples:
      kubectl delaytopic dead-letters resend order-reminders 0:17 0:19 --after 5m
      kubectl delaytopic dead-letters resend order-reminders --all --dry-run
    """
    document = request(places, **asked)
    with reach() as topic:
        result = sent(topic.resend, document)
    if is_json(output):
        echo_json(result)
    else:
        to = "".join(f", {count:,} to {each}" for each, count in sorted(result["to"].items()))
        more = "" if result["complete"] else "; there may be more"
        echo(f"{'would send' if result['dryRun'] else 'sent'} {_letters(result['sent'])} again{to}{more}")
        for place in result["sentBefore"]:
            echo(f"not sent: {place}: it was sent again before")
    for each in result["incomplete"]:
        echo(f"not sent: {each['place']}: {each['reason']}", err=True)
    if result["incompleteCount"]:
        raise ProgramError(f"{_letters(result['incompleteCount'])} cannot be sent again from here")


def request(
    places: Sequence[str],
    everything: bool,
    reasons: Sequence[str],
    after: str | None,
    at: str | None,
    dry_run: bool,
) -> dict[str, Any]:
    """Return the document that asks a gateway to send dead letters again. Raises InputError. Pure."""
    if everything == bool(places):
        raise InputError("name places such as 0:17, or all with --all; not both")
    if places and reasons:
        raise InputError("--reason chooses among all: it goes with --all, and not with places")
    if len(places) > MOST_PLACES:
        raise InputError(f"name up to {MOST_PLACES} places at a time, not {len(places)}")
    if after is not None and at is not None:
        raise InputError("set --after or --at, not both")
    chosen = {"places": [*places]} if places else {"reasons": [*reasons]} if reasons else {"all": True}
    time_asked: dict[str, Any] = {"deliverAfter": str(duration(after))} if after is not None else {}
    if at is not None:
        time_asked = {"deliverAt": instant_ms(at)}
    return {**chosen, **time_asked, "dryRun": dry_run}


def sent(ask: Callable[[dict[str, Any]], dict[str, Any]], document: dict[str, Any]) -> dict[str, Any]:
    """Ask until the gateway has reached the end, or sends no more; return its documents as one."""
    whole = ask(document)
    last = whole
    while not (last["complete"] or last["dryRun"]) and last["sent"]:
        try:
            last = ask(document)
        except ProgramError as error:
            before = f"{_letters(whole['sent'])} sent again before; the same command goes on behind them"
            raise type(error)(f"{error}; {before}") from error
        whole = {
            **last,
            "sent": whole["sent"] + last["sent"],
            "to": dict(Counter(whole["to"]) + Counter(last["to"])),
            "fromFirst": whole["fromFirst"],
        }
    return whole


def _letters(count: int) -> str:
    return "1 dead letter" if count == 1 else f"{count:,} dead letters"
