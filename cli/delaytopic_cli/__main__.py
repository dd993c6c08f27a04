"""The entry point of `delaytopic`: one clear line for each error, and no traceback."""

from __future__ import annotations

import sys

import click

from delaytopic_process.command_line import Lazy, LazyGroup, run_command, version_option

_COMMANDS = {
    "init": Lazy(
        "delaytopic_cli.commands.init:init", "Write a DelayTopic, a DelayClass or a RecurringRecord to begin with."
    ),
    "validate": Lazy(
        "delaytopic_cli.commands.validate:validate",
        "Check DelayTopics, DelayClasses and RecurringRecords without a cluster.",
    ),
    "local": Lazy(
        "delaytopic_cli.commands.local:local", "Run DelayTopics on this machine, with real Kafka and Redis.", "local"
    ),
    "clock": Lazy(
        "delaytopic_cli.commands.clock:clock", "Read and move the clock of `delaytopic local --clock manual`."
    ),
    "status": Lazy("delaytopic_cli.commands.status:status", "Show how the DelayTopics of `delaytopic local` do."),
    "send": Lazy("delaytopic_cli.commands.send:send", "Send records that are delivered at their own time.", "client"),
    "explain": Lazy("delaytopic_cli.commands.explain:explain", "Tell when a record with some headers is delivered."),
    "cancel": Lazy("delaytopic_cli.commands.cancel:cancel", "Cancel pending records by their ids.", "client"),
    "get": Lazy(
        "delaytopic_cli.commands.records:get", "Show a record by its id: what waits, or how it ended.", "client"
    ),
    "reschedule": Lazy("delaytopic_cli.commands.records:reschedule", "Give a pending record another time.", "client"),
    "jobs": Lazy("delaytopic_cli.commands.jobs:jobs", "Cancel, move or release many records.", "client"),
    "watch": Lazy("delaytopic_cli.commands.watch:watch", "Watch delivered records arrive.", "client"),
    "trial": Lazy(
        "delaytopic_cli.commands.trial:trial", "Send a record through a DelayTopic, and see it arrive.", "client"
    ),
    "pending": Lazy("delaytopic_cli.commands.pending:pending", "List records that wait for their time.", "client"),
    "dead-letters": Lazy(
        "delaytopic_cli.commands.dead_letters:dead_letters", "List dead letters, and send them again.", "client"
    ),
    "plan": Lazy("delaytopic_cli.plan.command:plan", "Show what the operator would make of DelayTopics.", "operator"),
    "audit": Lazy(
        "delaytopic_cli.audit.group:audit",
        "Judge from the topics whether every record arrived, once, on time.",
        "audit",
    ),
}


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@version_option
def cli() -> None:
    """Delayed delivery for Apache Kafka: records appear on a target topic at their own time.

    \b
    Try it on this machine, with a real Kafka and a real Redis and nothing to install:
      delaytopic local -f examples/reminders.yaml
      echo 'tea is ready' | delaytopic send shop.order-reminders.delayed --after 3m
      delaytopic watch shop.order-reminders
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code: 0, 130 after Ctrl-C, else the code of the error's class."""
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line; errors become one line each on standard error. Returns the exit code."""
    return run_command(cli, arguments, "delaytopic")


if __name__ == "__main__":
    main()
