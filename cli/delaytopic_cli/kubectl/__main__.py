"""The entry point of `kubectl delaytopic`: one clear line for each error, and no traceback."""

from __future__ import annotations

import sys

import click

from delaytopic_process.command_line import Lazy, LazyGroup, run_command, version_option

PROGRAM = "kubectl delaytopic"
_COMMANDS = {
    "status": Lazy("delaytopic_cli.kubectl.status:status", "How one DelayTopic does, as a page; or all, as a table."),
    "why-scale": Lazy("delaytopic_cli.kubectl.status:why_scale", "Why there are as many relays as there are."),
    "pending": Lazy("delaytopic_cli.kubectl.records:pending", "List records that wait for their time."),
    "get": Lazy("delaytopic_cli.kubectl.records:get", "Show a record by its id: what waits, or how it ended."),
    "cancel": Lazy("delaytopic_cli.kubectl.records:cancel", "Cancel pending records by their ids."),
    "reschedule": Lazy("delaytopic_cli.kubectl.records:reschedule", "Give a pending record another time."),
    "jobs": Lazy("delaytopic_cli.kubectl.records:jobs", "Cancel, move or release many records."),
    "trigger": Lazy("delaytopic_cli.kubectl.recurring:trigger", "Deliver a RecurringRecord now, beside its times."),
    "backfill": Lazy("delaytopic_cli.kubectl.recurring:backfill", "Deliver a RecurringRecord for times that are past."),
    "dead-letters": Lazy("delaytopic_cli.kubectl.records:dead_letters", "List dead letters, and send them again."),
    "pause": Lazy("delaytopic_cli.kubectl.annotate:pause", "Let the operator change nothing; relays run on."),
    "resume": Lazy("delaytopic_cli.kubectl.annotate:resume", "Undo pause."),
    "reconcile": Lazy("delaytopic_cli.kubectl.annotate:reconcile", "Ask the operator to look now."),
    "drain": Lazy("delaytopic_cli.kubectl.drain:drain", "Remove a DelayTopic once everything pending has left."),
}


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@version_option
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
    return run_command(cli, arguments, PROGRAM)


if __name__ == "__main__":
    main()
