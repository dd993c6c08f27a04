"""Edge: the command that starts an operator, whatever its reconciler."""

from __future__ import annotations

import gc
import resource
import signal
import sys
from pathlib import Path
from threading import Event, Thread
from types import FrameType
from typing import Final

import click
import structlog

from delaytopic_operator.config import OperatorConfig, read_operator_config
from delaytopic_operator.errors import ConfigurationError, OperatorError
from delaytopic_operator.kube.login import ClusterLogin
from delaytopic_operator.runtime.logs import LEVELS, configure_logs
from delaytopic_operator.runtime.manager import MakeReconcilers, Service
from delaytopic_operator.runtime.relay_token import with_relay_token

COLLECT_AFTER: Final = (50_000, 20, 20)
"""Objects in containers, then collections of the young ones, then of the middle ones."""
FILES: Final = 20_000
"""The files that it may open, as far as it may decide that: half of them are for connections to pods."""
EXIT_FAILED = 1
EXIT_MISCONFIGURED = 2

HELP = """Look after the DelayTopics of a Kubernetes cluster, until SIGTERM.

Of several operators one leads, by the Lease delaytopic-operator in the operator's namespace; the others stand by.
SIGTERM: take nothing more up, finish what is under way, release the Lease, all within 10 seconds.

Serves /livez, /readyz and /metrics on httpPort of the configuration. Logs JSON lines to standard error. Exit codes: 0
stopped, 1 failed, 2 misconfigured (the last line says what to change).
"""

log = structlog.get_logger()


def operator_command(make_reconcilers: MakeReconcilers) -> click.Command:
    """The command `delaytopic-operator`."""

    @click.command(name="delaytopic-operator", help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
    @click.option(
        "--config",
        "path",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="The OperatorConfig document (YAML). Without it, every setting has its default.",
    )
    @click.option(
        "--kubeconfig",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="How to reach the cluster from outside. Without it: as the ServiceAccount of the operator's pod.",
    )
    @click.option(
        "--log-level",
        type=click.Choice(LEVELS),
        default="info",
        show_default=True,
        help="What is less is not logged; with debug the libraries say more, too.",
    )
    def main(path: Path | None, kubeconfig: Path | None, log_level: str) -> None:
        configure_logs(log_level)
        _collect_seldom()
        open_many_files()
        stop = _stop_on_signals()
        try:
            config = read_operator_config(path) if path is not None else OperatorConfig()
            login = ClusterLogin(kubeconfig)
            known = with_relay_token(config, login, stop)
            if known is not None:
                Service(known, login, make_reconcilers).run(stop)
        except ConfigurationError as error:
            log.critical("misconfigured", reason=str(error))
            sys.exit(EXIT_MISCONFIGURED)
        except OperatorError as error:
            log.critical("failed", reason=str(error))
            sys.exit(EXIT_FAILED)

    return main


def _collect_seldom() -> None:
    """Have the collector of cyclic garbage pass over what is there already, and let what a look takes go before it
    comes: thousands of answers of Kafka would count as old with each question, so that all objects are gone through.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def open_many_files() -> None:
    """Allow this process as many files as it may allow itself: containers often begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _stop_on_signals() -> Event:
    """Set by the first SIGTERM or SIGINT; a second one ends the process as if there were no handler."""
    stop = Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        # Not here: the main thread may hold the event's lock, as it waits for it.
        Thread(target=stop.set, name="stop").start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    return stop
