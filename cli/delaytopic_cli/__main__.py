"""The entry point of `delaytopic`: one clear line for each error, and no traceback."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from delaytopic_cli.command_line import LazyGroup, fail, run_group
from delaytopic_cli.errors import CliError

_EXTRAS = {**dict.fromkeys(("jinja2", "py4j", "pyarrow", "pyspark"), "slo"), "kubernetes": "gateway"}
"""What brings a package that others than `delaytopic local` need."""
_COMMANDS = {
    "local": "delaytopic_cli.commands.local:local",
    "send": "delaytopic_cli.commands.send:send",
    "cancel": "delaytopic_cli.commands.cancel:cancel",
    "get": "delaytopic_cli.commands.records:get",
    "reschedule": "delaytopic_cli.commands.records:reschedule",
    "watch": "delaytopic_cli.commands.watch:watch",
    "pending": "delaytopic_cli.commands.pending:pending",
    "dead-letters": "delaytopic_cli.commands.dead_letters:dead_letters",
    "gateway": "delaytopic_cli.commands.gateway:gateway",
    "plan": "delaytopic_cli.plan.command:plan",
    "slo": "delaytopic_cli.slo.group:slo",
}


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(version("delaytopic"), message="%(prog)s %(version)s")
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
    try:
        return run_group(cli, arguments, "delaytopic")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("delaytopic"):
            raise
        extra = _EXTRAS.get(error.name or "", "local")
        text = f"this command needs the Python package {error.name}; install it with: pip install 'delaytopic[{extra}]'"
        return fail(text, CliError.exit_code)


if __name__ == "__main__":
    main()
