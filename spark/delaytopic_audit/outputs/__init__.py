"""Outputs of a run, for others: the files of a report, metrics, and tables in Delta's format."""

from __future__ import annotations

from delaytopic_audit.outputs.report_files import push_metrics, put_outputs, write_outputs
from delaytopic_audit.outputs.tables import publish_tables

__all__ = ["publish_tables", "push_metrics", "put_outputs", "write_outputs"]
