"""The steps of a run: intake, grading, commit, and gathering for the report."""

from __future__ import annotations

from delaytopic_audit.pipeline.ports import Progress, silent

__all__ = ["Progress", "silent"]
