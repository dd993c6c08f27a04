"""What a loop is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from delaytopic_relay.backlog.protocol import BacklogManager
from delaytopic_relay.core.commands import Dialect
from delaytopic_relay.core.suspension import Suspension
from delaytopic_relay.core.terms import NEVER_MS
from delaytopic_relay.delivery.outbound import Addressing
from delaytopic_relay.engine.pacing import Pace
from delaytopic_relay.engine.takeover import Takeover
from delaytopic_relay.ports import Clock, Journal, Source, Target


class Parts(NamedTuple):
    """`manager` is that of the backlog. `id_bytes` is for ids whose schedules are there, of all shards.

    `learn` is told which topics the next records name, so that all are asked about at once; None where none may be.
    """

    source: Source
    target: Target
    dialect: Dialect
    addressing: Addressing
    manager: BacklogManager[Any]
    takeover: Takeover
    pace: Pace
    memory_bytes: int
    clock: Clock
    journal: Journal
    suspension: Suspension = Suspension()
    max_delay_ms: int = NEVER_MS >> 2
    id_bytes: int = NEVER_MS
    learn: Callable[[Collection[str]], None] | None = None
