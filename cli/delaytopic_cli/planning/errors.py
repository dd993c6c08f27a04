"""What keeps a plan from being made."""

from __future__ import annotations

from delaytopic_cli.errors import CliError


class CannotJudge(CliError):
    """A file or the cluster cannot be read, so that nothing can be said; a pipeline must not take it for a plan."""

    exit_code = 1
