"""The state of one partition, without any backlog: commands in due order, ids, progress, rules, admission limits."""

from __future__ import annotations

from delaytopic_relay.core.commands import (
    OCCURRENCE,
    TO_BE_RESOLVED,
    Cancel,
    Command,
    Dialect,
    Ignore,
    Postpone,
    Reject,
    Schedule,
    SourceMessage,
)
from delaytopic_relay.core.progress import decode_progress
from delaytopic_relay.core.rules import Rules, decode_rules, encode_rules

__all__ = [
    "OCCURRENCE",
    "TO_BE_RESOLVED",
    "Cancel",
    "Command",
    "Dialect",
    "Ignore",
    "Postpone",
    "Reject",
    "Rules",
    "Schedule",
    "SourceMessage",
    "decode_progress",
    "decode_rules",
    "encode_rules",
]
