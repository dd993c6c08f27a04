"""`delaytopic audit`: judge from the topics whether every record arrived, once, on time."""

from __future__ import annotations

import click

from delaytopic_process.command_line import Lazy, LazyGroup

# Spark is imported by the commands: the help of `delaytopic` needs none.
_COMMANDS = {
    "run": Lazy("delaytopic_cli.audit.commands:run", "Read what is new, judge it, and write the report.", "audit"),
    "report": Lazy(
        "delaytopic_cli.audit.commands:report", "Write the last run's report again, for another window.", "audit"
    ),
    "export": Lazy(
        "delaytopic_cli.audit.export:export", "Write the objectives for OpenSLO's or Sloth's tools.", "audit"
    ),
}


@click.group(
    cls=LazyGroup,
    lazy_commands=_COMMANDS,
    short_help="Judge from the topics whether every record arrived, once, on time.",
)
def audit() -> None:
    """Audit DelayTopics from their topics alone, with Spark.

    Exit codes: 0 all objectives met, 1 one was missed, 2 could not judge.
    """
