"""The state of the loop at one moment, for the status page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from delaytopic_api.relay import RelayState
from delaytopic_process.open_transactions import OpenTransaction
from delaytopic_relay.backlog.protocol import Shard
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.second_clock import ClockState
from delaytopic_relay.delivery.reachability import Trouble
from delaytopic_relay.errors import StandsStill


@dataclass(frozen=True)
class LoopSnapshot:
    """The state of the loop at one moment: shards at work, why others wait or fail, what is committed, where the source
    ends.
    """

    state: RelayState
    shards: Mapping[int, Shard] = field(default_factory=dict)
    waiting: Mapping[int, str] = field(default_factory=dict)
    committed: Mapping[int, Progress] = field(default_factory=dict)
    paused: frozenset[int] = frozenset()
    ends: Mapping[int, int] = field(default_factory=dict)
    unreadable: Mapping[int, str] = field(default_factory=dict)
    moving: frozenset[int] = frozenset()
    """Shards whose backlog was on another backend, and is not yet read again."""
    rules_wait: Mapping[int, str] = field(default_factory=dict)
    """Shards in which the relay's own rules are not in force yet, and why."""
    still: Mapping[int, StandsStill] = field(default_factory=dict)
    """Shards that stand still until a person says how they go on, and why."""
    missing: Mapping[int, int] = field(default_factory=dict)
    """Shards that were to read what the source no longer has, and how many offsets that were."""
    deferring: frozenset[int] = frozenset()
    """Shards that read no further, as a record there would have to leave at once, and may not."""
    clock: ClockState | None = None
    """The comparison with the second clock; None without one."""
    suspended: bool = False
    """True while delivery is suspended."""
    open_transactions: Mapping[int, OpenTransaction] = field(default_factory=dict)
    """Shards that a producer's transaction keeps from being read further."""
    held: Mapping[int, Trouble] = field(default_factory=dict)
    """Shards that stand still while what they send to does not answer."""
    refused: Mapping[str, Trouble] = field(default_factory=dict)
    """Further targets that do not answer, for which records are dead letters meanwhile."""
