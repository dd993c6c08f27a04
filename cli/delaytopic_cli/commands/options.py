"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from delaytopic_cli.errors import InputError
from delaytopic_cli.local.state import read_running_state

F = TypeVar("F", bound=Callable[..., Any])


def kafka_options(command: F) -> F:
    """Add the options `--bootstrap-servers` and `-X`."""
    bootstrap = click.option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        envvar="DELAYTOPIC_BOOTSTRAP_SERVERS",
        show_envvar=True,
        help="Kafka to use. Default: that of the running `delaytopic local`.",
    )
    settings = click.option(
        "-X",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting of the Kafka client, such as security.protocol=SASL_SSL. Repeatable.",
    )
    return bootstrap(settings(command))


def client_settings(bootstrap_servers: str | None, pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the Kafka client's settings; raises InputError when no Kafka is named and none runs here."""
    settings = dict(split_pair(pair, "-X") for pair in pairs)
    if bootstrap_servers is None:
        running = read_running_state()
        if running is None:
            raise InputError("no Kafka: name one with --bootstrap-servers, or start one with: delaytopic local -f FILE")
        bootstrap_servers = running.bootstrap_servers
    return {**settings, "bootstrap.servers": bootstrap_servers}


def split_pair(text: str, option: str) -> tuple[str, str]:
    """Split `key=value` at the first equals sign; raises InputError naming the option."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise InputError(f'{option} takes KEY=VALUE, not "{text}"')
    return key, value
