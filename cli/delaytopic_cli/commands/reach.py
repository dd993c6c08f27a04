"""The DelayTopic that a command of `delaytopic` means, and the way to it: a gateway, or its relays and its Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from delaytopic_cli.commands.options import client_settings, kafka_only_options, local_option, running_local
from delaytopic_gateway.client.relay_listing import relay_url
from delaytopic_gateway.reach.direct import DirectTopic
from delaytopic_gateway.reach.rest import GatewayClient, GatewayTopic
from delaytopic_gateway.reach.service import TopicService
from delaytopic_process.command_line import echo
from delaytopic_process.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
Reach = Callable[[], AbstractContextManager[TopicService]]
"""Reaches the DelayTopic that a command means, anew each time: a gateway may have another address by then."""
ReachGateway = Callable[[], AbstractContextManager[GatewayTopic]]
"""A way to the same through a gateway, which has more to offer."""
At = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Adds what names a DelayTopic and the way to it, handed over as one argument `reach`."""
_RELAYS = click.option(
    "--relay",
    "relays",
    metavar="URL",
    multiple=True,
    envvar="DELAYTOPIC_RELAYS",
    show_envvar=True,
    help="Ask this relay by its pages, such as http://10.0.0.7:8080, and no gateway. Repeatable: name all relays of "
    "the DelayTopic.",
)
_KAFKA = partial(
    kafka_only_options, help_text="Use this Kafka with your own rights, and no gateway. TOPIC is then the source topic."
)
_DEAD_LETTER = click.option(
    "--dead-letter",
    metavar="NAME",
    help="Name the dead-letter topic, with --bootstrap-servers. Default: TOPIC and .dlq.",
)


_OUTCOMES = click.option(
    "--outcomes",
    metavar="NAME",
    help="Name the topic of outcomes, with --bootstrap-servers. Default: none, and nobody tells how a schedule ended.",
)


def _gateway_options(command: F) -> F:
    gateway = click.option(
        "--gateway",
        metavar="URL",
        envvar="DELAYTOPIC_GATEWAY",
        show_envvar=True,
        help="Ask this gateway. Default: that of the running `delaytopic local`.",
    )
    token_file = click.option(
        "--token-file",
        metavar="FILE",
        envvar="DELAYTOPIC_TOKEN_FILE",
        show_envvar=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Show the gateway of a cluster your token of the cluster.",
    )
    return gateway(token_file(local_option(command)))


def at_gateway(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument TOPIC and the options that name its gateway, handed over as one argument `reach`."""

    @click.argument("topic")
    @_gateway_options
    @wraps(command)
    def called(*arguments: Any, topic: str, gateway: str | None, token_file: Path | None, **options: Any) -> Any:
        return command(*arguments, reach=lambda: nullcontext(gateway_at(gateway, token_file).topic(topic)), **options)

    return called


def at_topic(*, relays: bool = False, kafka: bool = False, dead_letter: bool = False, outcomes: bool = False) -> At:
    """Add the argument TOPIC and the options of every way to it, handed over as one argument `reach`.

    `relays`, `kafka`, `dead_letter` and `outcomes` tell what the command needs where no gateway is asked.
    """
    direct: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
        *([_RELAYS] if relays else []),
        *([_KAFKA] if kafka else []),
        *([_DEAD_LETTER] if dead_letter else []),
        *([_OUTCOMES] if outcomes else []),
    ]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(
            *arguments: Any,
            topic: str,
            gateway: str | None,
            token_file: Path | None,
            relays: tuple[str, ...] = (),
            bootstrap_servers: str | None = None,
            settings: tuple[str, ...] = (),
            dead_letter: str | None = None,
            outcomes: str | None = None,
            **options: Any,
        ) -> Any:
            def reach() -> AbstractContextManager[TopicService]:
                topics = {"--dead-letter": dead_letter, "--outcomes": outcomes}
                if not _is_direct(gateway, relays, bootstrap_servers, settings, topics):
                    return nullcontext(gateway_at(gateway, token_file).topic(topic))
                if token_file is not None and _is_written("token_file"):
                    raise InputError("--token-file is shown to a gateway: leave it out, or --relay and -b")
                kafka = client_settings(bootstrap_servers, settings) if bootstrap_servers is not None else None
                urls = [*dict.fromkeys(map(relay_url, relays))]
                return nullcontext(DirectTopic(topic, urls, kafka, dead_letter=dead_letter, outcomes=outcomes))

            return command(*arguments, reach=reach, **options)

        for option in reversed(direct):
            called = option(called)
        return click.argument("topic")(_gateway_options(called))

    return decorate


def _is_direct(
    gateway: str | None,
    relays: tuple[str, ...],
    bootstrap_servers: str | None,
    settings: tuple[str, ...],
    topics: Mapping[str, str | None],
) -> bool:
    """Tell whether relays and Kafka are asked themselves: the command line outranks the environment.

    Raises InputError for options that do not go together.
    """
    given = {"relays": bool(relays), "bootstrap_servers": bootstrap_servers is not None}
    written = [name for name, is_given in given.items() if is_given and _is_written(name)]
    if gateway is not None and _is_written("gateway") and written:
        raise InputError("a gateway asks relays and Kafka itself: leave --gateway out, or --relay and -b")
    direct = bool(written) if gateway is not None else any(given.values())
    of_kafka = [*(["-X"] if settings else []), *(name for name, topic in topics.items() if topic is not None)]
    if not (direct and given["bootstrap_servers"]) and of_kafka:
        option = of_kafka[0]
        raise InputError(f"{option} goes with a Kafka: name it with --bootstrap-servers")
    return direct


def _is_written(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def gateway_at(url: str | None, token_file: Path | None = None) -> GatewayClient:
    """Return the gateway with this address, or that of the running `delaytopic local`. Raises InputError."""
    if url is None:
        running = running_local()
        url = running.gateway_url if running is not None else None
    if url is None:
        raise InputError("no gateway: name one with --gateway, or start one with: delaytopic local -f FILE")
    token = read_token(token_file) if token_file is not None else None
    return GatewayClient(url, token, warn=lambda text: echo(text, err=True))


def read_token(file: Path) -> str:
    """Return the token of a file. Raises InputError."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file: {file} cannot be read: {error}") from error
    if not token or not token.isprintable():
        raise InputError(f"--token-file: {file} has to hold one line with a token")
    return token
