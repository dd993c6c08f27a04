"""The consumer group's coordinator: generations, sessions, and cooperative rebalancing in two phases.

As with the real client, a member's background thread rejoins by itself, so that its generation moves on
between any two polls; what changes for its shards it hears in its next poll. A shard goes to another member
only after the old one has acknowledged the revocation, or has been evicted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from delaytopic_relay.errors import TransactionAborted

News = tuple[str, list[int]]


@dataclass(eq=False)
class Member:
    """One consumer, as the coordinator knows it; `news` waits for its next poll."""

    number: int
    generation: int = -1
    shards: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    news: deque[News] = field(default_factory=deque)
    silent_since_ms: int | None = None
    evicted_at_ms: int | None = None


class Group:
    """All shards of one topic, shared by the members."""

    def __init__(self, shards: Iterable[int], session_ms: int) -> None:
        self._shards = sorted(shards)
        self._session_ms = session_ms
        self._members: dict[int, Member] = {}
        self._numbers = 0
        self._rotation = 0
        self._unsettled = False
        self.generation = 0

    def succeeded(self, shards: Iterable[int]) -> Group:
        """Return the group without its members, who do not hear of it, over these shards."""
        group = Group(shards, self._session_ms)
        group._numbers, group.generation = self._numbers, self.generation
        return group

    def join(self) -> Member:
        """A new member; it gets shards once a rebalance is complete."""
        self._numbers += 1
        member = self._members[self._numbers] = Member(self._numbers)
        self._rebalance()
        return member

    def leave(self, member: Member) -> None:
        """A member goes, and says so."""
        self._members.pop(member.number, None)
        self._rebalance()

    def evict(self, member: Member, now_ms: int) -> None:
        """A member goes without knowing it; its shards are free at once."""
        if self._members.pop(member.number, None) is not None:
            member.evicted_at_ms = now_ms
            self._rebalance()

    def rotate(self) -> None:
        """Assign the shards anew, to other members where there are any."""
        self._rotation += 1
        self._rebalance()

    def silent(self, member: Member, now_ms: int) -> None:
        """No more heartbeats from this member: it is frozen or dead."""
        if member.silent_since_ms is None:
            member.silent_since_ms = now_ms

    def heard(self, member: Member) -> None:
        """Heartbeats again."""
        member.silent_since_ms = None
        self._complete()

    def released(self, member: Member, shards: Iterable[int]) -> None:
        """A member has acknowledged that it gave up these shards."""
        member.shards.difference_update(shards)
        member.leaving.difference_update(shards)
        self._rebalance()

    @property
    def settled(self) -> bool:
        """Return whether nothing is about to change: everybody is there, and has heard everything."""
        return not any(member.silent_since_ms is not None or member.news for member in self._members.values())

    def pass_time(self, now_ms: int) -> None:
        """Sessions end."""
        for member in list(self._members.values()):
            if member.silent_since_ms is not None and now_ms - member.silent_since_ms >= self._session_ms:
                self.evict(member, now_ms)

    def check(self, number: int, generation: int) -> None:
        """Return whether such a member may commit; raises `TransactionAborted`."""
        if number not in self._members:
            raise TransactionAborted("unknown member id")
        if generation != self.generation:
            raise TransactionAborted("illegal generation")

    def _rebalance(self) -> None:
        self._unsettled = True
        self._complete()

    def _complete(self) -> None:
        """A rebalance waits for everybody who has a session."""
        members = list(self._members.values())
        if not self._unsettled or any(member.silent_since_ms is not None for member in members):
            return
        self._unsettled = False
        self.generation += 1
        for member in members:
            member.generation = self.generation
        if members:
            for index, shard in enumerate(self._shards):
                self._move(shard, members[(index + self._rotation) % len(members)])

    def _move(self, shard: int, wanted: Member) -> None:
        owner = next((member for member in self._members.values() if shard in member.shards), None)
        if owner is None:
            wanted.shards.add(shard)
            wanted.news.append(("assigned", [shard]))
        elif owner is not wanted and shard not in owner.leaving:
            owner.leaving.add(shard)
            owner.news.append(("revoked", [shard]))
