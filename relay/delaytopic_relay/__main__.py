"""`delaytopic-relay --config FILE`: run one relay until SIGTERM or SIGINT."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import nullcontext
from pathlib import Path

import click

from delaytopic_process.extras import missing_package

# A collection finds nothing in what modules are made of, and takes a sixth of the time of the imports.
gc.disable()
# Else pydantic reads about each package that is installed, whether it is a plugin.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
try:
    import structlog
    from pydantic import ValidationError

    from delaytopic_api.relay import RelayConfig, RelaySource
    from delaytopic_process.stop_flag import StopFlag
    from delaytopic_relay.clock import ManualClock, SystemClock
    from delaytopic_relay.errors import ConfigurationError, RelayError
    from delaytopic_relay.kafka.member_name import member_name, name_on_host
    from delaytopic_relay.service import Service, read_relay_config
    from delaytopic_relay.telemetry.logs import configure_logs
except ModuleNotFoundError as error:
    sys.exit(f"error: {missing_package(error, 'relay')}")
gc.freeze()
gc.enable()

EXIT_MISCONFIGURED = 2
EXIT_FAILED = 1
KUBERNETES = "KUBERNETES_SERVICE_HOST"
"""Set by Kubernetes in each container."""

log = structlog.get_logger()


def with_accepted(config: RelayConfig, topic_id: str | None, repeats_until: str | None) -> RelayConfig:
    """Return the configuration with what is accepted on the command line. Raises `ConfigurationError`."""
    said = {"acceptedTopicId": topic_id, "acceptRepeats": repeats_until}
    given = {field: value for field, value in said.items() if value is not None}
    try:
        source = RelaySource.model_validate({**config.source.model_dump(by_alias=True, exclude_none=True), **given})
    except ValidationError as error:
        wrong = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
        raise ConfigurationError(f"--accept-source or --accept-repeats: {wrong}") from error
    return config.model_copy(update={"source": source})


def clock_of(file: Path | None) -> SystemClock:
    """Return the clock of a relay: the machine's without a file. Raises `ConfigurationError`."""
    if file is None:
        return SystemClock()
    if os.environ.get(KUBERNETES):
        raise ConfigurationError(
            "--manual-clock: a relay of a cluster has the machine's clock, as records would leave before their time; "
            "remove the flag (a clock that tests move is that of `delaytopic local --clock manual`)"
        )
    return ManualClock(file)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    "path",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The RelayConfig document (YAML) that the operator, or `delaytopic local`, wrote.",
)
@click.option(
    "--name",
    envvar="DELAYTOPIC_RELAY_NAME",
    show_envvar=True,
    metavar="NAME",
    help="Its own name among the relays of its group, such as its pod's. When it is started again under it, it goes on "
    "at once, instead of after the time of a session. Default: this host's name, and a number that no other relay "
    "of the group has here.",
)
@click.option(
    "--accept-source",
    metavar="TOPIC_ID",
    help="Where the group's offsets are of another topic than the source: begin at the first record of the one with "
    "this id, and discard what waited of the former one. The log and /status of a relay that stands still name the id.",
)
@click.option(
    "--accept-repeats",
    metavar="TIME",
    help="Where the group's offsets are gone: until this time, such as 2026-11-26T22:00:00Z and within a day, begin "
    "again although records will be delivered twice.",
)
@click.option(
    "--manual-clock",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="For tests of an application, by `delaytopic local --clock manual`: have a clock that is ahead of the "
    "machine's by the milliseconds in this file. Refused on Kubernetes.",
)
def main(
    path: Path, name: str | None, accept_source: str | None, accept_repeats: str | None, manual_clock: Path | None
) -> None:
    """Deliver the records of one DelayTopic at their own time, until SIGTERM.

    Serves /healthz, /readyz, /metrics and /status on http.port of the configuration. Logs JSON lines to
    standard error. Exit codes: 0 stopped, 1 failed, 2 misconfigured (the last line says what to change).
    """
    configure_logs()
    stop = StopFlag()
    try:
        config = with_accepted(read_relay_config(path), accept_source, accept_repeats)
        with nullcontext(member_name(name)) if name else name_on_host(config.group_id) as own_name:
            Service(config, own_name, clock_of(manual_clock)).run(stop)
    except ConfigurationError as error:
        log.critical("misconfigured", reason=str(error))
        sys.exit(EXIT_MISCONFIGURED)
    except RelayError as error:
        log.critical("failed", reason=str(error))
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
