"""A history as data: what it is set up with, and what happens in it, in order. Plans come from a seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.simulation.faults import Fault


class RuleSet(NamedTuple):
    """The settings of a DelayTopic that may be edited while records wait."""

    max_delay_ms: int = 8_640_000_000
    default_delay_ms: int | None = None
    delay_ms: int | None = None
    ids: bool = True
    allowed: bool = True
    """True if records may name the other topic."""


class Setup(NamedTuple):
    """Settings of a whole history."""

    shards: int = 1
    relays: int = 1
    """The number of relays kept running; others join, and zombies stay."""
    transactional: bool = True
    delay_ms: int | None = None
    redis: bool = False
    """The backlog: True for the production `RedisBacklogStore` over a simulated Redis, False for the memory backlog."""
    memory_bytes: int = 1 << 30
    chunk: int = 8
    session_ms: int = 6_000
    deaf_ms: int = 0
    """The time that an evicted relay goes on without knowing it."""
    precision_ms: int = 50
    lingers: bool = False
    part_items: int = 1_000
    """The number of segments and ids in one script of a Redis backlog."""
    portion: int = 16
    """The number of segments loaded at first."""
    load_ms: int = 0
    """The time that the backlog takes to answer a load."""
    early: int | None = None
    """The number of times that the loop asks about an early write into Redis before it is carried out: at 0 as soon as
    it begins. None if there are none.
    """
    keys: str = ""
    """True if segments are signed: "" is never, "same" with the same key, "changing" as `KEYS` of `relays` says."""
    scheduler: bool = False
    """True for the dialect Scheduler: ids by key, tombstones, history."""
    redelivery: bool = False
    """True for the dialect Redelivery: markers that put off, and what was put off in the source again."""
    recurs: bool = False
    """True if records have rules, by which they recur."""
    backends: str = ""
    """A letter for each relay in turn: "B" for one with bucket topics, "R" for one with Redis; "" is all with Redis."""
    named: bool = False
    """True if relays keep names in their group."""
    outcomes: bool = False
    """True if relays tell how each schedule ended."""
    removes_gone_ms: int | None = None
    """The time after which the operator takes a relay out of the group that has crashed for good; None if it never
    does.
    """
    rules: RuleSet | None = None
    """The rules that the history begins with, where they are edited; None if they are the usual ones for good."""
    moves: bool = False
    """True if somebody moves the clock of the relays ahead; records name the time that they wait, then."""
    told: str = "all"
    """The relays that are told how far the clock was moved: "all", or every second one at "some"."""
    declares: bool = False
    """True if relays know when their rules were declared, as an operator tells them."""

    second_clocks: str = ""
    """The relays that compare their clocks with one that is right: "all", every second one at "some", or none."""
    slow_ms: int = 0
    """The time that an answer of that clock takes."""
    held_bytes: int = 1 << 62
    """The bytes that a full backlog has refused from which on reading pauses."""
    offered: int = 500
    """The number of these that are offered again at once."""
    stays_full: bool = False
    """True if the backlog is full when the faults end, and until everything that was asked for has left."""
    stays_silent: bool = False
    """True if the first partition of the target, and the other topic, take nothing when the faults end, and until
    everything of the other shards has left."""


class Recipe(NamedTuple):
    """One source record. `due_ms` is relative to the time it is produced, `at_ms` absolute."""

    partition: int = 0
    due_ms: int | None = None
    at_ms: int | None = None
    name: bytes | None = None
    cancel: bool = False
    keeps: bool = False
    """A marker that puts off, of the dialect Redelivery."""
    value: bytes | None = b"v"
    others: Sequence[tuple[str, bytes | None]] = ()
    """Further headers, in front of those that say when."""
    rule: Sequence[tuple[str, bytes]] = ()
    """The headers of a rule by which it recurs; a time with a plus is relative to now, one with a wave on a wall."""


class Produce(NamedTuple):
    """Applications append records; in a transaction, if it says how that ends and how long it stays open."""

    recipes: tuple[Recipe, ...]
    commits: bool | None = None
    open_ms: int = 0


class Pass(NamedTuple):
    """Time passes, and every relay takes a turn."""

    duration_ms: int


class Arm(NamedTuple):
    """A fault awaits a relay; `relay` counts from the youngest."""

    relay: int
    fault: Fault


class Start(NamedTuple):
    """Another relay starts; `suspended` names what stands still there: "", "ingest", "delivery" or both."""

    suspended: str = ""


class Stop(NamedTuple):
    """A relay stops gracefully."""

    relay: int


class Edit(NamedTuple):
    """Somebody edits the rules: relays that start from now on have these."""

    rules: RuleSet


class StartTwin(NamedTuple):
    """Another process starts under the name that a relay has in the group, which lives."""

    relay: int


class Remove(NamedTuple):
    """The operator takes a relay out of the group that lives, which hears in between that it is `fenced`, or later."""

    relay: int
    fenced: bool


class Rotate(NamedTuple):
    """The group assigns its shards anew."""


class SetClock(NamedTuple):
    """A relay's clock is wrong from now on, and goes wrong further."""

    relay: int
    wrong_ms: int
    drift_permille: int


class Advance(NamedTuple):
    """Somebody moves the clock of the relays ahead, and waits until all shards have it."""

    duration_ms: int


class ClockSilent(NamedTuple):
    """The clock that is right does not answer for a while."""

    duration_ms: int


class Retain(NamedTuple):
    """The source's retention deletes what is long done."""


class SourceChanged(NamedTuple):
    """The source becomes another one: "made anew", "replaced" while offsets stay, "mirrored" into another cluster, or
    "cut" to a `share` of its records and of a later epoch; or the group's offsets are "lost", or "set" by a tool.
    """

    what: str
    share: float = 0


class Accept(NamedTuple):
    """Somebody accepts the source as it is, and repeats for an hour; relays start that know it."""


class BacklogAway(NamedTuple):
    """The backlog's server restarts, without losing anything."""

    duration_ms: int


class BacklogCopied(NamedTuple):
    """A replica or a file has the backlog as it is now."""


class BacklogRolledBack(NamedTuple):
    """The backlog is as it was when it was copied `copies` times ago: a stale replica, or a restart that lost
    writes.
    """

    copies: int = 1


class BacklogWiped(NamedTuple):
    """The backlog is empty."""


class BacklogFull(NamedTuple):
    """The backlog takes no segments: somebody else has filled its server."""

    duration_ms: int


class BacklogDemoted(NamedTuple):
    """Another server is the backlog's primary from now on; connections to the former one stay open."""


class SegmentReplaced(NamedTuple):
    """Somebody puts a copy of one segment in the place of another of its slice; `number` says of which slice."""

    number: int


class TargetSilent(NamedTuple):
    """A partition of a topic takes nothing; one that `looks_well` answers all other requests."""

    topic: str
    partition: int
    duration_ms: int
    looks_well: bool


class BucketDamaged(NamedTuple):
    """Somebody meddles with a bucket topic: `what` is truncated (its first part is gone), emptied, or foreign."""

    bucket: int
    what: str


Action = (
    Produce
    | Pass
    | Arm
    | Start
    | Stop
    | Edit
    | StartTwin
    | Remove
    | Rotate
    | SetClock
    | Advance
    | ClockSilent
    | Retain
    | SourceChanged
    | Accept
    | BacklogAway
    | BacklogCopied
    | BacklogRolledBack
    | BacklogWiped
    | BacklogFull
    | BacklogDemoted
    | SegmentReplaced
    | TargetSilent
    | BucketDamaged
)


class Plan(NamedTuple):
    """A whole history, to be run any number of times with the same outcome."""

    setup: Setup
    actions: tuple[Action, ...]
