"""Cancels by id: find where each waits, write the cancel there, and tell what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from delaytopic_api.relay import Ending, Outcome, PendingRecord
from delaytopic_gateway.errors import GatewayUnreachableError, RelayUnreachableError
from delaytopic_gateway.reach.text import ending_text

LOOK_SECONDS: Final = 2.5
"""The longest time until relays have read what was in the source topic before; they count once a second."""
AWAIT_SECONDS: Final = 5.0
"""The longest time until relays have read a cancel."""
PAUSE_SECONDS: Final = 0.1
COUNT_SECONDS: Final = 1.5
"""After this time a count that a gateway shows was made after what it has to count."""
NOT_PENDING_CODE: Final = 7
UNREAD_CODE: Final = 8


class Verdict(StrEnum):
    """The end that the cancel of an id came to."""

    CANCELLED = "Cancelled"
    """It was pending; relays have read the cancel before its time."""
    SWEPT = "Swept"
    """The id was not seen pending; the cancel is in all partitions, and read, so that nothing with the id is pending
    any more."""
    NOT_PENDING = "NotPending"
    """Relays had read the whole source topic, and nothing with the id was pending."""
    TOO_LATE = "TooLate"
    """It was pending, and due before relays had read the cancel."""
    UNREAD = "Unread"
    """The cancel is written, and not read yet as far as is known."""
    UNKNOWN = "Unknown"
    """The id was not seen pending; relays have records still to read, and nothing was written."""

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends so."""
        match self:
            case Verdict.CANCELLED | Verdict.SWEPT:
                return 0
            case Verdict.NOT_PENDING | Verdict.TOO_LATE:
                return NOT_PENDING_CODE
            case _:
                return UNREAD_CODE


class Found(NamedTuple):
    """The pending records with an id, and whether no partition was left out."""

    records: Sequence[PendingRecord]
    complete: bool


NOTHING_FOUND: Final = Found((), False)

T = TypeVar("T")
Ends = Mapping[int, int]
"""Offsets by partition; all below them is meant."""


class Relays(Protocol):
    """The relays of a DelayTopic, asked themselves or through a gateway."""

    def find(self, name: str) -> Found:
        """Return what is pending with an id. Raises `RelayUnreachableError` and `GatewayUnreachableError`."""
        ...

    def have_read(self, ends: Ends, seconds: float) -> bool:
        """Return whether all below these offsets was taken in; it is there since so many seconds.

        Raises as `find` does.
        """
        ...


class Commands(Protocol):
    """The way for cancels into the source topic."""

    @property
    def everywhere(self) -> bool:
        """True if a cancel can be written to all partitions."""
        ...

    def ends(self) -> Ends:
        """Return the end of each partition now; nothing where nobody can see it."""
        ...

    def cancel(self, places: Mapping[str, Sequence[int] | None]) -> Mapping[str, Mapping[int, int]]:
        """Write the cancel of each id to these partitions, None for all; return the offsets by partition.

        Partitions where it proved too late are left out. Raises `ProgramError`s.
        """
        ...

    def outcome(self, partition: int, offset: int, seconds: float) -> Outcome | None:
        """Return how the schedule at a place ended, in a partition where a cancel was written; wait so long for it.

        None where it is not known in time, or no outcomes are written. Raises `ProgramError`s.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An id, and what became of its cancel."""

    name: str
    verdict: Verdict
    partitions: Sequence[int] = ()
    """The partitions that the cancel was written to."""
    listed: bool = False
    """True if the id was seen pending; else the cancel went to all partitions."""
    outcome: Outcome | None = None
    """The relay's own word, where outcomes are written: the end of the record that was seen pending."""

    def to_json(self) -> dict[str, Any]:
        """Return the part of the document that `-o json` prints."""
        told = {} if self.outcome is None else {"ended": self.outcome.to_document()}
        return {"id": self.name, "outcome": str(self.verdict), "partitions": [*self.partitions], **told}

    def sentence(self, now_ms: int) -> str:
        """Return it for people."""
        if self.outcome is not None:
            late = "too late: " if self.verdict is Verdict.TOO_LATE else ""
            return f"{late}{ending_text(self.outcome, now_ms=now_ms)}"
        match self.verdict:
            case Verdict.CANCELLED:
                return "cancelled"
            case Verdict.SWEPT:
                return f"not pending any more; the cancel was written to {self._places} and read"
            case Verdict.NOT_PENDING:
                return "nothing with this id was pending"
            case Verdict.TOO_LATE:
                return "too late: it was due while the cancel was on its way"
            case Verdict.UNREAD:
                return f"the cancel was written to {self._places}; relays have not read it yet, as far as is known"
            case Verdict.UNKNOWN:
                return "not pending so far; relays have records still to read, so try again in a moment"

    @property
    def _places(self) -> str:
        if not self.listed:
            return f"all {len(self.partitions)} partitions"
        several = "s" if len(self.partitions) > 1 else ""
        return f"partition{several} {', '.join(map(str, self.partitions))}"


def exit_code(ended: Iterable[Cancelled], *, waited: bool) -> int:
    """Return the exit code of all: what is not known outranks what was not pending. Pure.

    Who does not wait asks for no more than that cancels are written.
    """
    codes = {each.verdict.exit_code for each in ended if waited or each.verdict is not Verdict.UNREAD}
    return max(codes, default=0)


def summary(ended: Sequence[Cancelled]) -> str:
    """Return one line for several ids. Pure."""
    words = {
        "cancelled": (Verdict.CANCELLED,),
        "not pending any more": (Verdict.SWEPT,),
        "not pending": (Verdict.NOT_PENDING,),
        "too late": (Verdict.TOO_LATE,),
        "written, not read yet": (Verdict.UNREAD,),
        "not known": (Verdict.UNKNOWN,),
    }
    counts = {word: sum(each.verdict in verdicts for each in ended) for word, verdicts in words.items()}
    return f"{len(ended):,} ids: " + (", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "-")


@dataclass(frozen=True, slots=True)
class _Written:
    name: str
    offsets: Mapping[int, int]
    records: Sequence[PendingRecord]
    at_s: float

    def ended(self, outcome: Verdict) -> Cancelled:
        return Cancelled(self.name, outcome, sorted(self.offsets), bool(self.records))


class Cancelling:
    """Cancels ids, of one DelayTopic. A cancel beside the partition of its id does nothing there."""

    def __init__(
        self,
        relays: Relays | None,
        commands: Commands,
        *,
        wait: bool = True,
        wait_s: float = AWAIT_SECONDS,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`relays` None: nobody is asked. `wait_s` is the longest time until a cancel is known to be read.

        `say` gets the reason why relays could not be asked, once.
        """
        self._relays = relays
        self._commands = commands
        self._wait = wait
        self._wait_s = wait_s
        self._say = say
        self._clock = clock
        self._pause = pause
        self._said = False
        self._silent = False
        """True from the first question that nobody answers to the end of the turn: the others are not asked then."""

    def cancel_all(self, names: Iterable[str]) -> list[Cancelled]:
        """Cancel each id once; the answer has their order. Raises `ProgramError`s, also after some were written."""
        asked = list(dict.fromkeys(names))
        written, missing = self._where_listed(asked)
        ended = {each.name: each for each in self._rest(missing, written)}
        ended |= {each.name: each for each in self._await(written)}
        return [ended[name] for name in asked]

    def _where_listed(self, names: Sequence[str]) -> tuple[list[_Written], dict[str, Verdict]]:
        """Write the cancels of the ids that are seen pending; return them, and what is known of the others."""
        relays, written = self._relays, list[_Written]()
        if relays is None:
            return written, dict.fromkeys(names, Verdict.UNKNOWN)
        ends, start_s = self._commands.ends(), self._clock()
        found = self._look(relays, names, written)
        missing = [name for name in names if not found[name].records]
        if not missing or not self._wait or self._silent:
            return written, dict.fromkeys(missing, Verdict.UNKNOWN)
        # In this order: what was taken in is pending or gone when it is asked for.
        have_read = self._await_read(relays, ends, start_s)
        found = self._look(relays, missing, written)
        missing = [name for name in missing if not found[name].records]
        is_certain = have_read and all(found[name].complete for name in missing)
        return written, dict.fromkeys(missing, Verdict.NOT_PENDING if is_certain else Verdict.UNKNOWN)

    def _look(self, relays: Relays, names: Sequence[str], written: list[_Written]) -> Mapping[str, Found]:
        """Ask for these ids, and write the cancels of those that are pending."""
        self._silent = False
        found = {name: self._find(relays, name) for name in names}
        written += self._write({name: each for name, each in found.items() if each.records})
        return found

    def _await_read(self, relays: Relays, ends: Ends, start_s: float) -> bool:
        """Wait until all that was there at the start is taken in, but for a bounded time."""
        while not (have_read := self._have_read(relays, ends, start_s)):
            if self._silent or self._clock() - start_s >= LOOK_SECONDS:
                break
            self._pause(PAUSE_SECONDS)
        return have_read

    def _rest(self, missing: Mapping[str, Verdict], written: list[_Written]) -> list[Cancelled]:
        """Write the cancels of ids that may wait anywhere to all partitions, if possible; return the others' ends."""
        if self._commands.everywhere:
            unknown = [name for name, outcome in missing.items() if outcome is Verdict.UNKNOWN]
            written += self._write(dict.fromkeys(unknown, NOTHING_FOUND))
            missing = {name: outcome for name, outcome in missing.items() if outcome is not Verdict.UNKNOWN}
        return [Cancelled(name, outcome) for name, outcome in missing.items()]

    def _write(self, found: Mapping[str, Found]) -> list[_Written]:
        if not found:
            return []
        everywhere = self._commands.everywhere
        places = {
            name: None if everywhere and not each.complete else sorted({record.partition for record in each.records})
            for name, each in found.items()
        }
        offsets = self._commands.cancel(places)
        now_s = self._clock()
        return [_Written(name, offsets[name], each.records, now_s) for name, each in found.items()]

    def _await(self, written: Sequence[_Written]) -> list[Cancelled]:
        """Return what became of the cancels, once relays have read them, but for a bounded time."""
        ended = [each.ended(Verdict.TOO_LATE) for each in written if not each.offsets]
        waiting = [each for each in written if each.offsets]
        if self._wait:
            told = [self._told(each) for each in waiting]
            ended += [each for each in told if each is not None]
            waiting = [each for each, answer in zip(waiting, told, strict=True) if answer is None]
        relays = self._relays if self._wait else None
        until_s = self._clock() + self._wait_s
        while relays is not None and waiting:
            self._silent = False
            outcomes = [(each, self._outcome(relays, each)) for each in waiting]
            ended += [each.ended(outcome) for each, outcome in outcomes if outcome is not Verdict.UNREAD]
            waiting = [each for each, outcome in outcomes if outcome is Verdict.UNREAD]
            if self._clock() >= until_s:
                break
            if waiting:
                self._pause(PAUSE_SECONDS)
        return ended + [each.ended(Verdict.UNREAD) for each in waiting]

    def _told(self, written: _Written) -> Cancelled | None:
        """Return what the outcomes say of a cancel; None where they say nothing in time."""
        left_s = max(0.0, written.at_s + self._wait_s - self._clock())
        found = [self._commands.outcome(each.partition, each.offset, left_s) for each in written.records]
        ended = [each for each in found if each is not None]
        if not ended or len(ended) < len(found):
            return None
        # What nobody took away in time counts: one of several partitions is enough.
        lost = next((each for each in ended if each.outcome is not Ending.CANCELLED), None)
        return replace(written.ended(Verdict.CANCELLED if lost is None else Verdict.TOO_LATE), outcome=lost or ended[0])

    def _outcome(self, relays: Relays, written: _Written) -> Verdict:
        if not written.records:
            ends = {partition: offset + 1 for partition, offset in written.offsets.items()}
            return Verdict.SWEPT if self._have_read(relays, ends, written.at_s) else Verdict.UNREAD
        found = self._find(relays, written.name)
        # A later record with the same id is another one.
        waits = any(record.offset < written.offsets.get(record.partition, -1) for record in found.records)
        if waits or not found.complete:
            return Verdict.UNREAD
        due_ms = min(record.due_ms for record in written.records)
        return Verdict.CANCELLED if self._clock() * 1_000 < due_ms else Verdict.TOO_LATE

    def _find(self, relays: Relays, name: str) -> Found:
        return self._asked(lambda: relays.find(name), NOTHING_FOUND)

    def _have_read(self, relays: Relays, ends: Ends, since_s: float) -> bool:
        return self._asked(lambda: relays.have_read(ends, self._clock() - since_s), False)

    def _asked(self, ask: Callable[[], T], silence: T) -> T:
        """Ask relays; `silence` is the answer of those that cannot be asked, where cancels reach them all the same."""
        if self._silent:
            return silence
        try:
            return ask()
        except (RelayUnreachableError, GatewayUnreachableError) as error:
            if not self._commands.everywhere:
                raise
            self._silent = True
            if not self._said:
                self._said = True
                self._say(str(error))
            return silence
