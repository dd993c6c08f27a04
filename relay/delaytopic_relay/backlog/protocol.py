"""The seam between the relay and its backlog: what engine, pages and telemetry ask of any backend.

A `Backlog` plans and opens shards, has one manager that carries out what they ask for, and opens readers for the page
of pending records. It is chosen once (`opening`): Redis, bucket topics in Kafka, or none for a fixed delay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from delaytopic_api.relay import BucketStatus
from delaytopic_relay.backlog.store import Slice
from delaytopic_relay.core.commands import Command, DueKey, End, Leaving, Record, Schedule
from delaytopic_relay.core.done import Done
from delaytopic_relay.core.epochs import Epochs
from delaytopic_relay.core.id_states import IdEntry
from delaytopic_relay.core.partition import Share, Stored, Wanted
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, FormerLife, Plan
from delaytopic_relay.core.rules import Generation


class Shard(Protocol):
    """The state machine of one source partition. Pure: it says what to do, and the caller does it."""

    committed_offset: int
    """L of the last commit."""
    epochs: Epochs
    """The leader epochs of what was read, told to it with the records."""

    @property
    def partition(self) -> int:
        """The source partition."""
        ...

    @property
    def position(self) -> int:
        """The source offset up to which everything was taken in."""
        ...

    @property
    def cursor(self) -> DueKey:
        """The key of the last delivered schedule."""
        ...

    @property
    def done(self) -> Done:
        """The schedules that are done, of those that were taken in."""
        ...

    def come_back(self, now_ms: int) -> None:
        """Let the cursor go back to the clock if it is far ahead of it, so that what comes is delivered in time."""
        ...

    @property
    def replay_until(self) -> int:
        """The source offset below which everything was taken in before."""
        ...

    @property
    def replaying(self) -> bool:
        """Return whether records taken in before are being read again; until that is over nothing is delivered."""
        ...

    tells_ends: bool
    """True if `Leaving` tells what commands have ended; False if nobody asks."""
    looks_ahead: bool
    """True if the source is still looked through for what relays have written into it; nothing is delivered then."""

    @property
    def size(self) -> int:
        """Return about how many bytes of memory the schedules take."""
        ...

    @property
    def far_bytes(self) -> int:
        """Return about how many bytes of memory take those that wait for the next put."""
        ...

    @property
    def ids_bytes(self) -> int:
        """Return about how many bytes of memory ids take whose schedules are not in memory."""
        ...

    @property
    def refuses_ids(self) -> bool:
        """Return whether schedules with an id are refused, because those that wait take too much memory."""
        ...

    @property
    def counted(self) -> bool:
        """True if all that waits is known, so that it can be counted."""
        ...

    @property
    def share(self) -> Share | None:
        """The part of the backlog that is this shard's, where that is bounded or known; None elsewhere."""
        ...

    @property
    def must_put(self) -> bool:
        """Return whether a commit has to wait for a put; otherwise memory and backlog together are the whole."""
        ...

    def follow(self, generations: Sequence[Generation], floor: int) -> None:
        """Go on with these generations of rules, which are committed.

        Raises `QueueImpossible` where all records have to wait equally long.
        """
        ...

    def without_departures(self, commands: Sequence[Command], now_ms: int) -> Sequence[Command]:
        """Return those of a chunk that can be taken in while only what is due by then may leave."""
        ...

    def unknown_ids(self, commands: Sequence[Command]) -> Sequence[bytes]:
        """Return the ids that the backlog has to be asked about before these commands are taken in."""
        ...

    def renew_admission_limits(self, now_ms: int, *, ids_share: float) -> None:
        """Decide what is taken in from now on; to be called before records are.

        `ids_share` is what ids take of the memory that they may.
        """
        ...

    def ingest(self, commands: Sequence[Command], next_position: int, found: Mapping[bytes, IdEntry]) -> Leaving:
        """Sort a chunk, with the backlog's answer for `unknown_ids`, and return what leaves at once."""
        ...

    def settled(self) -> None:
        """Take note that what was taken in is committed."""
        ...

    def look_ahead(self, commands: Sequence[Command], found: Mapping[bytes, IdEntry]) -> None:
        """Take note of what relays have written into the source, of commands that are read properly later on."""
        ...

    def not_written(self, offsets: Iterable[int]) -> Sequence[End]:
        """Take note that nothing was written into the source for schedules at these offsets: they are dead letters, or
        have nothing after them.

        Returns the cancels that have met nothing then: they were taken for the ends of what was to be written.
        """
        ...

    def reached_end(self, end: int) -> None:
        """Note that the source has no further records below `end`."""
        ...

    def take_due(self, now_ms: int, limit: int) -> Leaving:
        """Remove and return what is due, in order."""
        ...

    def progress(self, owner: str) -> Progress:
        """Return what to commit once nothing waits for a put and all that was handed out is sent."""
        ...

    def wake_ms(self) -> int | None:
        """Return when something is due; None when nothing in memory is."""
        ...

    def full(self, now_ms: int, *, paused: bool) -> bool:
        """Return whether reading on can wait."""
        ...

    # -- for the pages: nothing is changed

    @property
    def pending(self) -> int:
        """Schedules that are not yet done, wherever they wait."""
        ...

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Yield the spans of time in which schedules wait: start, width, and how many."""
        ...

    def withdrawn(self) -> Iterator[tuple[int, int, int]]:
        """Yield the spans of those among them that are known to be cancelled or replaced."""
        ...

    def next_due_ms(self) -> int | None:
        """Return when the first schedule is due, wherever it waits; None without any."""
        ...

    def first_in_memory(self, wanted: Wanted) -> tuple[list[Schedule], int | None]:
        """Return the first schedules in memory, and from when on some could not be looked at."""
        ...

    def stored(self) -> Stored:
        """Return what is not in memory, as of now."""
        ...

    def bucket_status(self) -> list[BucketStatus]:
        """Return the state of each bucket, where there are any."""
        ...

    @property
    def former_rules(self) -> Sequence[Generation]:
        """Return the generations of rules before the one in force, by which schedules may wait."""
        ...


Shard_contra = TypeVar("Shard_contra", bound=Shard, contravariant=True)


class BacklogManager(Protocol[Shard_contra]):
    """The one who carries out what the shards ask of their backlog."""

    @property
    def unreadable(self) -> Mapping[int, str]:
        """The reasons why shards cannot be loaded any further, by partition."""
        ...

    @property
    def awaits(self) -> bool:
        """Return whether something may be due that was asked for and has not come yet: nobody sleeps meanwhile."""
        ...

    def look_up(self, shard: Shard_contra, names: Sequence[bytes]) -> Mapping[bytes, IdEntry]:
        """Return what the backlog knows of these ids."""
        ...

    def put_early(self, shards: Collection[Shard_contra]) -> Sequence[Record]:
        """Begin what need not wait for a commit, so that it is settled sooner; return records for the transaction."""
        ...

    def put_all(self, shards: Collection[Shard_contra]) -> Sequence[Record]:
        """Store what a commit takes for granted: done already, or records for the transaction."""
        ...

    def drop_done(self, shards: Iterable[Shard_contra]) -> None:
        """Forget what is done; called after a commit."""
        ...

    def hand_over(self, shards: Iterable[Shard_contra]) -> None:
        """Note that these shards go to a successor; called after their last commit."""
        ...

    def lost(self) -> Collection[int]:
        """Return partitions whose backlog lacks what was stored: each is to be recovered, and none of the others."""
        ...

    def list_next(self, shards: Sequence[Shard_contra]) -> None:
        """Find out what waits, as far as that is not known yet."""
        ...

    def load_next(self, shards: Sequence[Shard_contra], room_bytes: int) -> bool:
        """Load what comes within the horizon; return whether that has to be committed."""
        ...


class Portion(NamedTuple):
    """Some schedules of the slices that were asked for, and how many bytes they took to read."""

    schedules: Sequence[Schedule]
    data_bytes: int


class SliceGone(Exception):
    """A slice was forgotten while it was read: its schedules are done, or in other slices."""


class PendingReader(Protocol):
    """Access to a backlog for reading only, from another thread than the loop's.

    The reader takes no part in ownership: it only compares (`still_at`). A backlog that moves schedules from one slice
    to others writes the copies first and forgets the original last, so whoever finds a slice gone finds its
    schedules in the slices as they are then. All methods raise `BacklogUnavailable` and `CorruptState`.
    """

    def slices(self, partition: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        """Return the slices that begin at `from_ms` or later and before `before_ms`, with the records put into each.

        Copies are counted, too. Slices that begin outside may be among them.
        """
        ...

    def expect(self, partition: int, slices: Sequence[Slice]) -> None:
        """Prepare to read these next: what takes its time may begin."""
        ...

    def read(self, partition: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        """Yield all schedules of these slices in portions of bounded size, in any order. Raises `SliceGone`.

        What is due at or after `before_ms()`, which falls while more is found, may be left out.
        """
        ...

    def ids(self, partition: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        """Return the entries of these ids, None where there is none, in the order asked for."""
        ...

    def still_at(self, partition: int, version: Any) -> bool:
        """Return whether the backlog is as in a shard's `Stored.state`: nobody else's, and no write is missing."""
        ...

    def close(self) -> None:
        """Give back the connection."""
        ...


class EmptyReader:
    """A `PendingReader` of a backlog in which nothing is stored."""

    def slices(self, partition: int, from_ms: int, before_ms: int) -> Mapping[Slice, int]:
        """Return none."""
        return {}

    def expect(self, partition: int, slices: Sequence[Slice]) -> None:
        """Do nothing."""

    def read(self, partition: int, slices: Sequence[Slice], before_ms: Callable[[], int]) -> Iterator[Portion]:
        """Yield nothing."""
        return iter(())

    def ids(self, partition: int, names: Sequence[bytes]) -> Sequence[IdEntry | None]:
        """Return None for each."""
        return [None] * len(names)

    def still_at(self, partition: int, version: Any) -> bool:
        """Return True: nobody else can have written."""
        return True

    def close(self) -> None:
        """Do nothing."""


class Forgotten(NamedTuple):
    """The pending records that a former topic had in a backlog, about, and what is to be written so that nothing of
    them is left, in the transaction that commits the new beginning.
    """

    records: int = 0
    writes: Sequence[Record] = ()


class Backlog(Protocol):
    """The place where the schedules of one relay wait that are due beyond the horizon."""

    @property
    def manager(self) -> BacklogManager[Any]:
        """The one for all shards that were opened here."""
        ...

    @property
    def transactional(self) -> bool:
        """Return whether what is stored is part of the transaction that commits the progress."""
        ...

    @property
    def largest_batch_bytes(self) -> int | None:
        """The largest batch of records that its own topics take; None where it has no topics."""
        ...

    def begin(self, partitions: int) -> None:
        """Take note of how many partitions the source has; called once, before a shard is planned."""
        ...

    def plan(
        self, partition: int, committed: Progress | None, bounds: Bounds, owner: str, *, offset_reset: bool
    ) -> Plan:
        """Return where a shard starts that came to this relay. Raises `Unavailable` and `CorruptState`."""
        ...

    def former_life(self, partition: int, *, offset_reset: bool) -> FormerLife | None:
        """Return what shows that the shard had a former life, although nothing is committed, or with `offset_reset` a
        bare offset; None where nothing does. Raises `Unavailable`.
        """
        ...

    def forget(self, partition: int, marks: Collection[str], committed: Progress | None) -> Forgotten:
        """Forget all that a shard has of the source topics with these marks. Raises `Unavailable`."""
        ...

    def prepare(self, partitions: Sequence[int]) -> None:
        """Read what several shards need before they are opened. Raises `Unavailable`."""
        ...

    def open(self, partition: int, plan: Plan) -> Shard:
        """Claim the shard and return it; its plan is committed.

        Raises `Unavailable`, `BacklogMoved`, and `QueueImpossible` where all records have to wait equally long.
        """
        ...

    def follow(self, shard: Any, generations: Sequence[Generation]) -> None:
        """Take note that the last of these rules begin in an open shard, and those before end, once committed.

        Raises `Unavailable` and `BacklogMoved`.
        """
        ...

    def reader(self, states: Mapping[int, Any]) -> PendingReader:
        """Open a reader of shards, given the `Stored.state` of each."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...
