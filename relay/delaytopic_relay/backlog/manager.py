"""What the loop asks of whoever keeps the shelf: Redis, or bucket topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from delaytopic_relay.core.id_state import IdState
from delaytopic_relay.core.partition import ShardCore
from delaytopic_relay.delivery.outbound import Outgoing

Shard_contra = TypeVar("Shard_contra", bound=ShardCore, contravariant=True)


class ShelfKeeping(Protocol[Shard_contra]):
    """Carries out what the shards ask of their shelf."""

    @property
    def unreadable(self) -> Mapping[int, str]:
        """Why shards cannot be loaded any further, by shard."""
        ...

    def look_up(self, shard: Shard_contra, names: Sequence[bytes]) -> dict[bytes, IdState]:
        """What the shelf knows of these ids."""
        ...

    def put_all(self, shards: Iterable[Shard_contra]) -> Sequence[Outgoing]:
        """Make the shelf hold what a commit takes for granted: done already, or records for the transaction."""
        ...

    def drop_done(self, shards: Iterable[Shard_contra]) -> None:
        """After a commit: forget what is done."""
        ...

    def hand_over(self, shards: Iterable[Shard_contra]) -> None:
        """After the last commit for these shards."""
        ...

    def lost(self) -> Collection[int]:
        """Shards whose shelf no longer has what was put there: each has to be recovered, and none of the others."""
        ...

    def list_next(self, shards: Sequence[Shard_contra]) -> None:
        """Find out what waits, as far as that is not known yet."""
        ...

    def load_next(self, shards: Sequence[Shard_contra], room_bytes: int) -> bool:
        """Load what comes within the horizon; whether that has to be committed."""
        ...
