"""The benchmark's errors: one tree, each says what went wrong in which case."""

from __future__ import annotations


class BenchError(Exception):
    """Base of everything the benchmark raises on purpose; the command prints it as one line and exits with 1."""


class Stalled(BenchError):
    """A case did not get where it had to within its time, or one of its processes ended; the text carries the log."""


class PromiseBroken(BenchError):
    """Records were lost, delivered twice, or early: no figure of such a run means anything."""


class Unmeasurable(BenchError):
    """A case ran, but not under the conditions that its figure stands for; the text says how to get them."""
