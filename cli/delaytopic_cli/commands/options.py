"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from delaytopic_local.session.known_topics import KnownTopic
from delaytopic_local.session.state import NAME_VARIABLE, LocalState, read_running_state, running_states
from delaytopic_process.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


def kafka_options(command: F) -> F:
    """Add the options `--bootstrap-servers`, `-X` and `--local`."""
    help_text = "Use this Kafka. Default: that of the running `delaytopic local`."
    return kafka_only_options(local_option(command), help_text)


def kafka_only_options(command: F, help_text: str) -> F:
    """Add the options `--bootstrap-servers`, of which the text says what comes of it, and `-X`."""
    bootstrap = click.option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,...",
        envvar="DELAYTOPIC_BOOTSTRAP_SERVERS",
        show_envvar=True,
        help=help_text,
    )
    settings = click.option(
        "-X",
        "settings",
        metavar="KEY=VALUE",
        multiple=True,
        help="Give the Kafka client a setting, such as security.protocol=SASL_SSL. Repeatable.",
    )
    return bootstrap(settings(command))


def local_option(command: F) -> F:
    """Add the option `--local`; `running_local` follows it."""
    return click.option(
        "--local",
        metavar="NAME",
        envvar=NAME_VARIABLE,
        show_envvar=True,
        expose_value=False,
        callback=_keep_name,
        help="Use the running `delaytopic local` of this name. Default: the one that has the topic.",
    )(command)


def _keep_name(context: click.Context, _: click.Parameter, name: str | None) -> None:
    context.meta[NAME_VARIABLE] = name


def running_local() -> LocalState | None:
    """Return the `delaytopic local` that the command line means, or None; raises InputError where that is not clear."""
    context = click.get_current_context(silent=True)
    if context is None:
        return read_running_state()
    return read_running_state(context.params.get("topic"), context.meta.get(NAME_VARIABLE))


def client_settings(bootstrap_servers: str | None, pairs: tuple[str, ...]) -> dict[str, str]:
    """Return the Kafka client's settings; raises InputError when no Kafka is named and none runs here."""
    # Commands that go through a gateway share this module, and need no Kafka client.
    from delaytopic_process.kafka_tokens import with_authorities  # noqa: PLC0415

    settings = dict(split_pair(pair, "-X") for pair in pairs)
    if bootstrap_servers is None:
        running = running_local()
        if running is None:
            raise InputError("no Kafka: name one with --bootstrap-servers, or start one with: delaytopic local -f FILE")
        bootstrap_servers = running.bootstrap_servers
    return {**with_authorities(settings), "bootstrap.servers": bootstrap_servers}


def known_topics(settings: Mapping[str, str]) -> list[KnownTopic]:
    """Return the DelayTopics that a running `delaytopic local` has on this Kafka."""
    servers = settings["bootstrap.servers"]
    return [topic for state in running_states() if state.bootstrap_servers == servers for topic in state.topics]


def refuse_moved_clock(settings: Mapping[str, str]) -> None:
    """Raise InputError for the Kafka of a `delaytopic local` whose clock is moved.

    Receipts there have the times of that clock, and topics the broker's: what compares them would find faults. Settings
    without servers are those of a pod, which has them from its relays' configuration.
    """
    servers = settings.get("bootstrap.servers")
    if any(state.bootstrap_servers == servers and state.clock == "manual" for state in running_states()):
        raise InputError(
            "this `delaytopic local` runs with --clock manual: its records arrive by a clock that is moved, and their "
            "topics keep the broker's, so that this command cannot judge; use one with the machine's clock"
        )


def split_pair(text: str, option: str) -> tuple[str, str]:
    """Split `key=value` at the first equals sign; raises InputError naming the option."""
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise InputError(f'{option} takes KEY=VALUE, not "{text}"')
    return key, value
