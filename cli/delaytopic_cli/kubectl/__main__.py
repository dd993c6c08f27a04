"""The entry point of `kubectl delaytopic`: one clear line for each error, and no traceback."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from delaytopic_cli.command_line import LazyGroup, run_group

PROGRAM = "kubectl delaytopic"
_COMMANDS = {
    "status": "delaytopic_cli.kubectl.status:status",
    "why-scale": "delaytopic_cli.kubectl.status:why_scale",
    "pending": "delaytopic_cli.kubectl.pending:pending",
    "get": "delaytopic_cli.kubectl.records:get",
    "cancel": "delaytopic_cli.kubectl.records:cancel",
    "reschedule": "delaytopic_cli.kubectl.records:reschedule",
    "dead-letters": "delaytopic_cli.kubectl.dead_letters:dead_letters",
    "pause": "delaytopic_cli.kubectl.annotate:pause",
    "resume": "delaytopic_cli.kubectl.annotate:resume",
    "reconcile": "delaytopic_cli.kubectl.annotate:reconcile",
    "drain": "delaytopic_cli.kubectl.drain:drain",
}


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("delaytopic"), message="%(prog)s %(version)s")
def cli() -> None:
    """See how DelayTopics do and what waits in them; cancel and move records; hold or remove DelayTopics.

    \b
    Everything goes through kubectl itself, with your context, namespace and login:
      kubectl delaytopic status
      kubectl delaytopic status order-reminders -n shop
      kubectl delaytopic pending order-reminders --due-before 10m
      kubectl delaytopic cancel order-reminders order-17
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; errors become one line each on standard error. Returns the exit code."""
    return run_group(cli, arguments, PROGRAM)


if __name__ == "__main__":
    main()
