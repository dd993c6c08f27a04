"""The error of a plan."""

from __future__ import annotations

from delaytopic_process.errors import ProgramError


class NoPlan(ProgramError):
    """A file or the cluster cannot be read, so that nothing can be said; a pipeline must not take it for a plan."""

    exit_code = 1
