"""`delaytopic clock`: read and move the clock of a running `delaytopic local --clock manual`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from delaytopic_api.records import rfc_3339
from delaytopic_cli.commands.options import local_option
from delaytopic_cli.commands.output import OUTPUT, show
from delaytopic_cli.commands.reach import gateway_at
from delaytopic_gateway.reach.rest import GatewayClient


@click.group(short_help="Read and move the clock of `delaytopic local --clock manual`.")
def clock() -> None:
    """Read and move the clock of a running `delaytopic local --clock manual`, which is for tests.

    \b
    Examples:
      delaytopic clock advance 7d
      delaytopic clock show -o json
    """


def _at_clock(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the gateway of a clock, handed over as one argument `gateway`."""

    @click.option(
        "--gateway",
        metavar="URL",
        envvar="DELAYTOPIC_GATEWAY",
        show_envvar=True,
        help="Ask this gateway. Default: that of the running `delaytopic local`.",
    )
    @local_option
    @OUTPUT
    @wraps(command)
    def called(*arguments: Any, gateway: str | None, **options: Any) -> Any:
        return command(*arguments, gateway=gateway_at(gateway), **options)

    return called


@clock.command(short_help="Show what the clock shows.")
@_at_clock
def show_clock(gateway: GatewayClient, output: str | None) -> None:
    """Show the time of the clock, and by how much it is ahead of the machine's."""
    _show(output, gateway.ask("GET", "/v1/clock"))


clock.add_command(show_clock, "show")


@clock.command(short_help="Move the clock on.")
@click.argument("duration")
@_at_clock
def advance(gateway: GatewayClient, duration: str, output: str | None) -> None:
    """Move the clock on by a DURATION such as 7d, 1d12h or 90s; it never goes back.

    It returns when all relays have followed: what is due by then leaves at once, and a record that is produced from now
    on counts from the time that the clock shows.

    \b
    Examples:
      delaytopic clock advance 7d
    """
    _show(output, gateway.ask("POST", "/v1/clock", {"advance": duration}))


def _show(output: str | None, found: Mapping[str, int]) -> None:
    ahead = f"{found['shiftMs'] / 1_000:,.3f}".rstrip("0").rstrip(".")
    show(output, found, [f"{rfc_3339(found['nowMs'])}, {ahead} s ahead of this machine's clock"])
