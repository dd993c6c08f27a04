"""`delaytopic get` and `delaytopic reschedule`: one pending record by its id."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from delaytopic_api.relay import PendingRecord
from delaytopic_cli.commands.options import local_option, running_local
from delaytopic_gateway.client.gateway import GatewayClient, GatewayTopic, WrittenCommand
from delaytopic_gateway.client.pending import span_text
from delaytopic_gateway.client.time_text import clock_text, duration, instant_ms
from delaytopic_process.command_line import echo, echo_json, printable
from delaytopic_process.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
Reach = Callable[[], AbstractContextManager[GatewayTopic]]
"""Reaches the DelayTopic that a command means, anew each time: a gateway may have another address by then."""
AtGateway = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds what names a DelayTopic and its gateway, handed over as one argument `reach`."""
OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), help="Default: text on a terminal, JSON elsewhere."
)
PARTITION = click.option("--partition", type=click.IntRange(0), help="Where the id waits, when it does in several.")


def gateway_options(command: F) -> F:
    """Add the options `--gateway` and `--token-file`."""
    gateway = click.option(
        "--gateway",
        metavar="URL",
        envvar="DELAYTOPIC_GATEWAY",
        show_envvar=True,
        help="The gateway to ask. Default: that of the running `delaytopic local`.",
    )
    token_file = click.option(
        "--token-file",
        metavar="FILE",
        envvar="DELAYTOPIC_TOKEN_FILE",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Your token of the cluster, for the gateway of a cluster.",
    )
    return gateway(token_file(command))


def at_gateway(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TOPIC and the options that name its gateway, handed over as one argument `reach`."""

    @click.argument("topic")
    @gateway_options
    @local_option
    @wraps(command)
    def called(*arguments: Any, topic: str, gateway: str | None, token_file: Path | None, **options: Any) -> Any:
        return command(*arguments, reach=lambda: nullcontext(_client(gateway, token_file).topic(topic)), **options)

    return called


def move_options(command: F) -> F:
    """Add the argument ID and the options of a command that calls `move`."""
    identity = click.argument("schedule_id", metavar="ID")
    return identity(time_options(PARTITION(OUTPUT(command))))


def time_options(command: F) -> F:
    """Add the options `--after`, `--at` and `--now`, of which `new_time` makes one."""
    options = (
        click.option("--now", is_flag=True, help="Deliver it at once."),
        click.option("--at", metavar="TIME", help="When it is due: epoch milliseconds, or RFC 3339 with an offset."),
        click.option("--after", metavar="DURATION", help="How long from now it is due, such as 90s or 1h30m."),
    )
    for option in options:
        command = option(command)
    return command


@click.command(short_help="Show a pending record by its id.")
@at_gateway
@click.argument("schedule_id", metavar="ID")
@PARTITION
@OUTPUT
def get(reach: Reach, schedule_id: str, partition: int | None, output: str | None) -> None:
    """Show the pending record with this ID, whole: when it is due, its key, value and headers.

    TOPIC is the source topic, or the DelayTopic's name with or without its namespace.

    \b
    Examples:
      delaytopic get shop.reminders.delayed order-17
      delaytopic get shop/reminders order-17 -o json
      delaytopic get shop/reminders order-17 --token-file token \\
          --gateway https://delays.example.com
    """
    with reach() as topic:
        show_record(topic.record(schedule_id, partition), output)


@click.command(short_help="Give a pending record another time.")
@at_gateway
@move_options
def reschedule(reach: Reach, **asked: Any) -> None:
    """Give the pending record with this ID another time; key, value and headers stay.

    It travels through the source topic as a record that replaces the pending one. What is due within five seconds is
    not moved: it is about to be delivered.

    \b
    Examples:
      delaytopic reschedule shop.reminders.delayed order-17 --after 2h
      delaytopic reschedule shop/reminders order-17 --now
    """
    move(reach, **asked)


def move(
    reach: Reach,
    schedule_id: str,
    partition: int | None,
    output: str | None,
    after: str | None,
    at: str | None,
    now: bool,
) -> None:
    """Give a pending record another time, and print where the move is. Raises `ProgramError`s."""
    time_asked = new_time(after, at, now)
    with reach() as topic:
        moved = topic.move(schedule_id, partition, time_asked)
    show_move(schedule_id, moved, output)


def new_time(after: str | None, at: str | None, now: bool) -> dict[str, Any]:
    """Return the document that asks a gateway for another time. Raises InputError."""
    if sum((after is not None, at is not None, now)) != 1:
        raise InputError("say when the record is due: with --after, --at or --now")
    if after is not None:
        return {"deliverAfter": str(duration(after))}
    return {} if at is None else {"deliverAt": instant_ms(at)}


def named_gateway(url: str | None, token_file: Path | None) -> GatewayClient | None:
    """Return the gateway with this address, or that of the running `delaytopic local`; None without both."""
    if url is None:
        running = running_local()
        url = running.gateway_url if running is not None else None
    if url is None:
        return None
    token = read_token(token_file) if token_file is not None else None
    return GatewayClient(url, token, warn=lambda text: echo(text, err=True))


def _client(gateway: str | None, token_file: Path | None) -> GatewayClient:
    found = named_gateway(gateway, token_file)
    if found is None:
        raise InputError("no gateway: name one with --gateway, or start one with: delaytopic local -f FILE")
    return found


def read_token(file: Path) -> str:
    """Return the token of a file. Raises InputError."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file: {file} cannot be read: {error}") from error
    if not token or not token.isprintable():
        raise InputError(f"--token-file: {file} has to hold one line with a token")
    return token


def is_json(output: str | None) -> bool:
    """Return whether to print JSON: where it was asked for, and elsewhere than on a terminal."""
    return output == "json" or (output is None and not sys.stdout.isatty())


def show_record(record: PendingRecord, output: str | None) -> None:
    """Print a pending record."""
    if is_json(output):
        echo_json(record.model_dump(by_alias=True))
        return
    now_ms = _now_ms()
    echo(f"due      {clock_text(record.due_ms, now_ms=now_ms)} ({_ahead(record.due_ms - now_ms)})")
    echo(f"place    {record.partition}:{record.offset}")
    echo(f"target   {printable(record.target)}")
    for name, text in _contents(record):
        echo(f"{name:<8} {text}")


def show_move(schedule_id: str, moved: WrittenCommand, output: str | None) -> None:
    """Print where a move is, and when its record is due."""
    if is_json(output):
        echo_json(moved.to_json())
        return
    now_ms = _now_ms()
    due_ms = moved.due_ms or now_ms
    echo(f"{printable(schedule_id)} is due {clock_text(due_ms, now_ms=now_ms)} ({_ahead(due_ms - now_ms)})")


def _contents(record: PendingRecord) -> list[tuple[str, str]]:
    content = record.content
    if content is None:
        return []
    lines = [("key", _text(content.key, content.key_base64)), ("value", _text(content.value, content.value_base64))]
    headers = (f"{printable(header.name)}={_text(header.value, header.value_base64)}" for header in content.headers)
    return [*lines, *(("header", text) for text in headers)]


def _text(text: str | None, encoded: str | None) -> str:
    if text is not None:
        return printable(text)
    return "-" if encoded is None else f"base64:{encoded}"


def _ahead(ahead_ms: int) -> str:
    return "due" if ahead_ms <= 0 else f"in {span_text(ahead_ms)}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
