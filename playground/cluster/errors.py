"""The errors of a cluster, each with what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_LINES = 15


class ClusterError(Exception):
    """An error that keeps a cluster from being there."""


class MachineLacks(ClusterError):
    """Something has to be installed or allowed first; the text is one line that says what."""


class CommandFailed(ClusterError):
    """A program ended with an error or not in time; the text carries the end of what it printed."""

    def __init__(self, command: Sequence[str], how: str, output: str) -> None:
        """`how` it ended: a few words such as `exit code 1`."""
        self.command = tuple(command)
        self.output = output
        end = "\n".join(f"  {line}" for line in output.strip().splitlines()[-SHOWN_LINES:])
        super().__init__(f"{_short(command)}: {how}{':' if end else ''}\n{end}".rstrip())


class NotReady(ClusterError):
    """Something was started and did not answer in time."""


class NotPossible(ClusterError):
    """A kind of cluster that cannot do what was asked."""


def _short(command: Sequence[str], length: int = 160) -> str:
    text = " ".join(command)
    return text if len(text) <= length else f"{text[:length]}..."
