"""What a loop is made of."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from delaytopic_relay.addressing import Addressing
from delaytopic_relay.journal import Journal
from delaytopic_relay.pacing import Pace
from delaytopic_relay.ports import Clock, Source, Target
from delaytopic_relay.schedule import Dialect
from delaytopic_relay.shelf_keeping import ShelfKeeping
from delaytopic_relay.suspension import Suspension
from delaytopic_relay.takeover import Takeover
from delaytopic_relay.terms import NEVER_MS


class Parts(NamedTuple):
    """`shelving` is None for a fixed delay. `id_bytes` is for ids whose schedules are on the shelf, of all shards.

    `learn` is told which topics the next records name, so that all are asked about at once; None where none may be.
    """

    source: Source
    target: Target
    dialect: Dialect
    addressing: Addressing
    shelving: ShelfKeeping[Any] | None
    takeover: Takeover
    pace: Pace
    memory_bytes: int
    clock: Clock
    journal: Journal
    suspension: Suspension = Suspension()
    max_delay_ms: int = NEVER_MS >> 2
    id_bytes: int = NEVER_MS
    learn: Callable[[Collection[str]], None] | None = None
