"""The consumer group's coordinator: generations, sessions, and cooperative rebalancing in two phases.

As with the real client, a member's background thread rejoins by itself, so that its generation moves on
between any two polls; what changes for its shards it hears in its next poll. A shard goes to another member
only after the old one has acknowledged the revocation, or has been evicted.

A member may have a name (KIP-345). Who joins under a name takes the place of the member that has it: while the group is
at rest with its shards, in the same generation, and without a rebalance.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from delaytopic_relay.core.membership import Answer
from delaytopic_relay.errors import TransactionAborted

News = tuple[str, list[int]]


@dataclass(eq=False)
class Member:
    """One consumer, as the coordinator knows it; `news` waits for its next poll."""

    number: int
    name: str | None = None
    generation: int = -1
    shards: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    news: deque[News] = field(default_factory=deque)
    silent_since_ms: int | None = None
    evicted_at_ms: int | None = None
    fenced: bool = False
    """True if it hears that its name is another's, whoever has it by the time that it hears."""
    timed_out: bool = False
    """True if its own clock has told it that its session is over: it no longer asks the group."""


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
        self.changes: Counter[str] = Counter()
        """The number of members that joined, were replaced under their names, left, and were evicted."""

    def succeeded(self, shards: Iterable[int]) -> Group:
        """Return the group without its members, who do not hear of it, over these shards."""
        group = Group(shards, self._session_ms)
        group._numbers, group.generation = self._numbers, self.generation
        return group

    def join(self, name: str | None = None, now_ms: int = 0) -> Member:
        """A new member; it gets shards once a rebalance is complete, or those of the member whose name it takes."""
        self._numbers += 1
        member = Member(self._numbers, name)
        self.changes["joined"] += 1
        former = self.named(name)
        if former is None:
            self._members[member.number] = member
            self._rebalance()
        else:
            self._replace(former, member, now_ms)
        return member

    @property
    def is_empty(self) -> bool:
        """Return whether nobody is in the group."""
        return not self._members

    def named(self, name: str | None) -> Member | None:
        """Return the member that has this name."""
        return next((each for each in self._members.values() if name is not None and each.name == name), None)

    def _replace(self, former: Member, member: Member, now_ms: int) -> None:
        self.changes["replaced"] += 1
        former.evicted_at_ms = now_ms
        places = [member if each is former else each for each in self._members.values()]
        self._members = {each.number: each for each in places}
        if self._unsettled:
            self._rebalance()
            return
        # What the former one was about to let go is not assigned to it any more.
        member.generation = self.generation
        member.shards = former.shards - former.leaving
        if member.shards:
            member.news.append(("assigned", sorted(member.shards)))

    def take_out(self, name: str, now_ms: int, *, fenced: bool) -> None:
        """Somebody takes a member's place and leaves; the member that was there hears of it in between, or later."""
        former = self.named(name)
        if former is not None:
            former.fenced = fenced
            self.leave(self.join(name, now_ms))

    def unowned(self) -> set[int]:
        """Return the shards that nobody has, while the group is at rest."""
        owned = {partition for member in self._members.values() for partition in member.shards}
        return set() if self._unsettled else {*self._shards} - owned

    def answer_to(self, member: Member) -> Answer:
        """Return what a member hears that is not in the group any more."""
        if member.timed_out:
            return Answer.UNKNOWN_MEMBER
        return Answer.FENCED if member.fenced or self.named(member.name) is not None else Answer.UNKNOWN_MEMBER

    def leave(self, member: Member) -> None:
        """A member goes, and says so."""
        if self._members.pop(member.number, None) is not None:
            self.changes["left"] += 1
        self._rebalance()

    def evict(self, member: Member, now_ms: int) -> None:
        """A member goes without knowing it; its shards are free at once."""
        if self._members.pop(member.number, None) is not None:
            self.changes["evicted"] += 1
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

    def heard(self, member: Member, now_ms: int) -> None:
        """Heartbeats again."""
        silent_ms = now_ms - member.silent_since_ms if member.silent_since_ms is not None else 0
        member.timed_out = silent_ms >= self._session_ms
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
            for index, partition in enumerate(self._shards):
                self._move(partition, members[(index + self._rotation) % len(members)])

    def _move(self, partition: int, wanted: Member) -> None:
        owner = next((member for member in self._members.values() if partition in member.shards), None)
        if owner is None:
            wanted.shards.add(partition)
            wanted.news.append(("assigned", [partition]))
        elif owner is not wanted and partition not in owner.leaving:
            owner.leaving.add(partition)
            owner.news.append(("revoked", [partition]))
