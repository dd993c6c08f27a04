"""The state of one partition, without any backlog: commands in due order, ids, progress, terms."""

from __future__ import annotations

from delaytopic_relay.core.commands import Cancel, Command, Dialect, Ignore, Postpone, Reject, Schedule, SourceMessage

__all__ = ["Cancel", "Command", "Dialect", "Ignore", "Postpone", "Reject", "Schedule", "SourceMessage"]
