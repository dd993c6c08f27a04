"""`delaytopic-relay --config FILE`: run one relay until SIGTERM or SIGINT."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from delaytopic_process.extras import missing_package

try:
    import structlog

    from delaytopic_process.stop_flag import StopFlag
    from delaytopic_relay.errors import ConfigurationError, RelayError
    from delaytopic_relay.service import Service, read_relay_config
    from delaytopic_relay.telemetry.logs import configure_logs
except ModuleNotFoundError as error:
    sys.exit(f"error: {missing_package(error, 'relay')}")

EXIT_MISCONFIGURED = 2
EXIT_FAILED = 1
_MEMBER_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

log = structlog.get_logger()


def member_name(text: str) -> str:
    """Return a name that Kafka takes (KIP-345). Raises `ConfigurationError`."""
    if not _MEMBER_NAME.fullmatch(text) or text in (".", ".."):
        raise ConfigurationError(
            f"--name may have 249 letters, digits, dots, dashes and underscores, and is {text!r:.80}"
        )
    return text


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
    "at once; without a name, a crash costs the time of a session.",
)
def main(path: Path, name: str | None) -> None:
    """Deliver the records of one DelayTopic at their own time, until SIGTERM.

    Serves /healthz, /readyz, /metrics and /status on http.port of the configuration. Logs JSON lines to
    standard error. Exit codes: 0 stopped, 1 failed, 2 misconfigured (the last line says what to change).
    """
    configure_logs()
    stop = StopFlag()
    try:
        config = read_relay_config(path)
        Service(config, member_name(name) if name else None).run(stop)
    except ConfigurationError as error:
        log.critical("misconfigured", reason=str(error))
        sys.exit(EXIT_MISCONFIGURED)
    except RelayError as error:
        log.critical("failed", reason=str(error))
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main()
