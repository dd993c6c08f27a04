"""The ports of the loop: what it asks of the outside world, and what it reports.

The Kafka edges and the telemetry implement them, and so can a simulation. All calls come from one thread. Offsets are
those of the source topic, shards its partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from delaytopic_api.relay import Ending
from delaytopic_process.open_transactions import OpenTransaction
from delaytopic_relay.core.commands import Command, Leaving, Record, Reject, Schedule, SourceMessage
from delaytopic_relay.core.epochs import EpochStart
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.recovery import Bounds, Plan, SourceTopic
from delaytopic_relay.core.second_clock import Reading
from delaytopic_relay.delivery.batches import Batch
from delaytopic_relay.delivery.outcomes import Places
from delaytopic_relay.delivery.reachability import Sight
from delaytopic_relay.delivery.refusals import Refusal
from delaytopic_relay.errors import RelayError, StateInDoubt

ReadAll = Callable[[Sequence[SourceMessage]], list[Command]]
"""Turns records into commands, in their order."""

Look = Callable[[], Sight | None]
"""Returns what a look at topics has found, and None while it is under way."""
LookAt = Callable[[Collection[str]], Look]
"""Begins to look at topics, whether they can be written to, without waiting and without writing to them."""
InVain = Callable[[int], bool | None]
"""Asked now and then while acknowledgements are waited for, with the milliseconds for which none has come: True if none
will, None while that is being looked up."""


def never(silent_ms: int) -> bool | None:
    """Wait for acknowledgements as long as is waited at all."""
    return False


class BadBatch(NamedTuple):
    """A batch of the source that the client cannot read, by its offset, and what the client says of it."""

    offset: int
    reason: str


class Chunk(NamedTuple):
    """Commands of one shard in source order; `end` is set when the reader has reached the source's end there.

    `epochs` are the leader epochs of the records, as far as they are known. `bad` is what follows the commands.
    """

    commands: list[Command]
    end: int | None = None
    epochs: Sequence[EpochStart] = ()
    bad: BadBatch | None = None


class TooLarge(NamedTuple):
    """A batch of the source that takes more memory to unpack than `limit_bytes`: its offset, and the one behind it."""

    offset: int
    behind: int
    limit_bytes: int


class Place(NamedTuple):
    """A position in a log, and what is known of the last record below it."""

    position: int
    epoch: int
    """Its leader epoch; -1 if none is known."""
    behind: int
    """The offset behind it: from there to the position nothing was read."""


class Seen(NamedTuple):
    """The source as the cluster has it: which topic that is, and the leader epoch of each log's end where known."""

    topic: SourceTopic
    epochs: Mapping[int, int]


class Committed(NamedTuple):
    """The offset that the group has committed for a shard, with its metadata."""

    offset: int
    metadata: str


class Assignment(Protocol):
    """A listener to the group's decisions, called from inside `Source.poll`."""

    def assigned(self, partitions: Sequence[int]) -> None:
        """These shards are ours from now on; nothing of them is read before `Source.read_from`."""
        ...

    def revoked(self, partitions: Sequence[int]) -> None:
        """These shards go to somebody else as soon as this returns: the last chance to commit for them."""
        ...

    def lost(self, partitions: Sequence[int]) -> None:
        """These shards are somebody else's already: drop them."""
        ...


class GroupMetadata(Protocol):
    """The consumer group's generation, opaque to the loop."""


class Source(Protocol):
    """The consumer of the source topic, a member of the relay's group."""

    def subscribe(self, assignment: Assignment) -> None:
        """Join the group."""
        ...

    def poll(self, limit: int, timeout_ms: int, read: ReadAll) -> dict[int, Chunk]:
        """Up to `limit` records, each as the command that `read` makes of it; may call the assignment.

        The first one is waited for at most `timeout_ms`.

        Raises `StateInDoubt` when what is to be read next is gone. A member that has failed for good loses all shards
        by the assignment, and joins anew.
        """
        ...

    def read_from(self, partition: int, offset: int) -> None:
        """Read the shard from this offset on; raises `KafkaUnavailable` if that is not possible yet."""
        ...

    def pause(self, partitions: Iterable[int]) -> None:
        """Stop reading these shards."""
        ...

    def resume(self, partitions: Iterable[int]) -> None:
        """Read on where these shards were paused."""
        ...

    def look(self, partitions: Sequence[int]) -> Callable[[], Seen]:
        """Ask which topic this is, and how far its leader epochs have come; whoever calls the answer waits for it.

        The call raises `KafkaUnavailable`.
        """
        ...

    def cut_below(self, places: Mapping[int, Place]) -> Mapping[int, bool]:
        """Return of each partition whether its log was truncated below this place; without an answer it is left out.

        It was if the epoch of the last record ends in front of it, or if a committed record, or the end, is found
        between it and the position. Aborted records may be there, of whatever epoch. Raises `KafkaUnavailable`.
        """
        ...

    def first_at(self, partition: int, time_ms: int) -> int | None:
        """Return the first offset whose record has this timestamp or a later one; None without any.

        Raises `KafkaUnavailable`.
        """
        ...

    def bounds(self, partition: int) -> Bounds:
        """Return where the source's records begin and end now."""
        ...

    def end(self, partition: int) -> int:
        """Return where the source ends now, with what is in open transactions. Raises `KafkaUnavailable`."""
        ...

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """The ends as last seen: for lag, without waiting for an answer."""
        ...

    def open_transactions(self, partitions: Iterable[int]) -> dict[int, OpenTransaction]:
        """Return the transactions of producers that keep these from being read further, as last seen."""
        ...

    def last_committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        """Return what is committed as of now, without waiting for transactions in doubt."""
        ...

    def committed(self, partitions: Sequence[int]) -> dict[int, Committed]:
        """Return what is committed once no transaction is in doubt; a shard of which nothing ever was is left out.

        Raises `KafkaUnavailable` when that takes too long.
        """
        ...

    def commit(self, progress: Mapping[int, Progress]) -> None:
        """Commit without a transaction, and wait for the answer; raises `StateInDoubt` if it is refused."""
        ...

    def group_metadata(self) -> GroupMetadata:
        """The generation as of now."""
        ...

    def close(self) -> None:
        """Leave the group; `revoked` is called for what is still owned."""
        ...


class Target(Protocol):
    """The producer of target and dead-letter topics, in transactions or without."""

    @property
    def owner(self) -> str:
        """The `transactional.id` to name in progress; "" without transactions."""
        ...

    def begin(self) -> None:
        """Open a transaction (nothing without transactions)."""
        ...

    @property
    def packs(self) -> bool:
        """Return whether `send` takes batches of plain schedules, too."""
        ...

    def send(self, records: Sequence[Record | Batch]) -> None:
        """Produce records, in order; none is acknowledged before `flush` or `commit` returns.

        Raises `StateInDoubt`.
        """
        ...

    def take_places(self) -> Places:
        """Return where in their topics the records are that were sent since, and are acknowledged, and forget it."""
        ...

    def compress(self) -> None:
        """Compress what is sent from now on, if it does not yet.

        Raises `ProducerOutdated` if the tick has to be given up for it.
        """
        ...

    def store(self, records: Sequence[Record]) -> None:
        """Produce records of the backlog: always part of the transaction. Raises `StateInDoubt`."""
        ...

    def flush(self, in_vain: InVain = never) -> list[Refusal]:
        """Wait until all that was produced is acknowledged; those that Kafka refuses for good are returned.

        Raises `StateInDoubt`, of which `Unanswered` names what was not acknowledged. The producer has to be replaced
        then, and if records of a transaction were refused.
        """
        ...

    def commit(self, progress: Mapping[int, Progress], group: GroupMetadata) -> None:
        """Commit what was produced, with the progress; raises `StateInDoubt`."""
        ...

    def abort(self) -> None:
        """Abort an open transaction, if there is one; never raises `StateInDoubt`.

        What cannot be aborted now, or not soon, ends when the producer is replaced or fenced.
        """
        ...

    def fence(self, owner: str) -> None:
        """Make sure that a former owner can commit nothing any more, and end what it left open."""
        ...

    def replace(self) -> None:
        """Start anew with another producer after `Fenced` and `Unanswered`, perhaps as another `owner`."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


class Examiner(Protocol):
    """A reader on trial: it finds the batch by which relays end, and does not end itself."""

    def examine(self, partition: int, start: int, until: int) -> TooLarge | None:
        """Read a partition from `start`, up to `until` and some seconds further; return what is too large there.

        Raises `Unavailable` until that is known. A verdict holds as long as reading starts in front of the batch's end.
        """
        ...

    def forget(self, partition: int) -> None:
        """End reading a partition, and forget what was found there."""
        ...


class Clock(Protocol):
    """The loop's source of time. In a test of an application it may be moved ahead of the machine's."""

    @property
    def shift_ms(self) -> int:
        """The time by which it is ahead of the machine's clock, as what is committed says; it only grows."""
        ...

    @property
    def asked_ms(self) -> int:
        """The shift that a person has asked for; the loop commits it before the clock shows it."""
        ...

    def move(self, shift_ms: int) -> None:
        """Show this shift from now on; a smaller one than before changes nothing."""
        ...

    def now_ms(self) -> int:
        """Wall clock, epoch milliseconds, with the shift."""
        ...

    def monotonic_ms(self) -> int:
        """A clock that only goes forward, for intervals."""
        ...

    def sleep(self, duration_ms: int) -> None:
        """Wait."""
        ...


class SecondClock(Protocol):
    """Another clock than the own one: the backend's. Nobody waits for it."""

    @property
    def name(self) -> str:
        """Return the name that messages call it by."""
        ...

    def ask(self) -> None:
        """Begin to ask what it shows, unless an answer is awaited already."""
        ...

    def answer(self) -> Reading | str | None:
        """Return what it showed, or why it did not answer; None while an answer is awaited, or none is."""
        ...

    def close(self) -> None:
        """Give back connections."""
        ...


class LoopEvents(Protocol):
    """An observer of the loop; it may not fail and must be quick."""

    def commands(self, leaving: Leaving) -> None:
        """Commands with ids took effect."""
        ...

    def sent(
        self, schedules: Sequence[Schedule], rejects: Sequence[Reject], withheld: Sequence[Reject], sent_ms: int
    ) -> None:
        """Schedules were produced, but for those `withheld`, and rejects dead-lettered; it counts once committed."""
        ...

    def recurred(self, left: Sequence[Schedule], missed: int, sent_ms: int) -> None:
        """Note occurrences of what recurs that were produced, and how many slots were passed over behind them; both
        count once committed.
        """
        ...

    def ended(self, outcomes: Mapping[Ending, int]) -> None:
        """Note outcomes that were sent, by kind; they count once they are committed."""
        ...

    def committed(self, duration_ms: int) -> None:
        """All that was sent since the last call is committed."""
        ...

    def put(self, duration_ms: int) -> None:
        """The backlog acknowledged a write."""
        ...

    def reset(self, lost: StateInDoubt) -> None:
        """Everything in memory was dropped; what was sent since the last commit does not count."""
        ...

    def recovered(self, partition: int, cause: str, plan: Plan) -> None:
        """A shard goes on, recovered by this plan."""
        ...

    def fenced(self, owner: str) -> None:
        """A former owner can commit nothing any more."""
        ...

    def foreign(self, partition: int, where: str) -> None:
        """Something in the relay's own state was written by somebody else, and skipped; `where` gives its location."""
        ...

    def stuck(self, partition: int, error: RelayError) -> None:
        """A shard cannot be recovered now; it is tried again."""
        ...

    def unavailable(self, error: RelayError) -> None:
        """Kafka or the backlog did not answer; it is tried again."""
        ...
