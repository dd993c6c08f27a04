"""The promises of records that recur, over whole chains: a record of an application, and all that came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from math import inf

from tests.simulation.outcome import Accepted, Delivered, Outcome, Place

from delaytopic_api.records import OCCURRENCE as HEADER
from delaytopic_api.records import DeadLetterReason, Receipt, parse_dead_letter
from delaytopic_api.recurrence import Occurrence, Recurrence, next_occurrence, read_recurrence
from delaytopic_relay.core.commands import OCCURRENCE, TO_BE_RESOLVED, Reject, Schedule

Complaints = Iterator[str]


def goes_on(accepted: Accepted) -> bool:
    """Return whether a record recurs: it has to be followed by another one."""
    return isinstance(accepted.command, Schedule) and accepted.command.control in (TO_BE_RESOLVED, OCCURRENCE)


def is_written(accepted: Accepted) -> bool:
    """Return whether a relay has written a record as an occurrence."""
    command = accepted.command
    written = isinstance(command, Schedule) and command.control == OCCURRENCE
    return written or (isinstance(command, Reject) and command.rank is not None)


def is_to_be_resolved(accepted: Accepted) -> bool:
    """Return whether a record is never delivered itself."""
    return isinstance(accepted.command, Schedule) and accepted.command.control == TO_BE_RESOLVED


def ids_of(outcome: Outcome) -> set[bytes]:
    """Return the ids under which anything recurs."""
    commands = [accepted.command for accepted in outcome.source.values() if goes_on(accepted)]
    return {command.id for command in commands if isinstance(command, Schedule) and command.id is not None}


def followers(outcome: Outcome) -> dict[Place, list[Accepted]]:
    """Return what relays have written after each record, by its place: also what other rules refuse by then."""
    found: dict[Place, list[Accepted]] = defaultdict(list)
    for accepted in outcome.source.values():
        if is_written(accepted):
            found[outcome.former(accepted)].append(accepted)
    return found


def copies(outcome: Outcome) -> Iterator[Sequence[Accepted]]:
    """Yield the occurrences of which relays that may repeat themselves deliver one: what was written after the same
    record, and what was written for the same slot of a chain, which was resolved twice at different times.
    """
    after = followers(outcome)
    yield from after.values()
    of_slots: dict[tuple[Place, int], list[Accepted]] = defaultdict(list)
    for each in (each for written in after.values() for each in written if isinstance(each.command, Schedule)):
        of_slots[outcome.origin(each).place, _occurrence(each).nominal_ms].append(each)
    yield from of_slots.values()


def passed_over(outcome: Outcome) -> Iterator[Accepted]:
    """Yield the occurrences that relays that may repeat themselves drop, as their chain has passed the slots elsewhere.

    A record that leaves twice is followed by what its policy for missed slots says at each time. What leaves first
    goes on, and outranks what follows the other; the slots that it passes over are missed by that policy.
    """
    left = _by_place(outcome)
    chains: dict[Place, list[Accepted]] = defaultdict(list)
    for each in (each for written in followers(outcome).values() for each in written):
        if isinstance(each.command, Schedule):
            chains[outcome.origin(each).place].append(each)
    for chain in chains.values():
        gone_to = [(each.place[1], _reached(each, left[each.place])) for each in chain if each.place in left]
        for each in chain:
            assert isinstance(each.command, Schedule)
            rank, slot_ms = each.command.rank or 0, _occurrence(each).nominal_ms
            if any(offset > rank and reached_ms > slot_ms for offset, reached_ms in gone_to):
                yield each


def _reached(accepted: Accepted, left: Sequence[Delivered]) -> float:
    """Return the slot that a chain has come to with an occurrence that left: infinity if it ended there."""
    ended = any(_next(accepted, at_ms) is None for at_ms in _times(left))
    return inf if ended else _occurrence(accepted).nominal_ms


def _by_place(outcome: Outcome) -> dict[Place, list[Delivered]]:
    left: dict[Place, list[Delivered]] = defaultdict(list)
    for delivered in outcome.delivered:
        left[delivered.place].append(delivered)
    return left


def _times(left: Sequence[Delivered]) -> list[int]:
    """Return when a record left, each time that it did, by the clock of the relay."""
    times = [Receipt.parse(each.sent.record.headers[-1][1]).sent_ms for each in left if not each.dead]
    letters = [parse_dead_letter(each.sent.record.headers) for each in left if each.dead]
    return times + [letter.at_ms for letter in letters if letter is not None]


def may_be_refused(accepted: Accepted, delivered: Delivered) -> bool:
    """Return whether a record may be a dead letter as it has no occurrence that may be written."""
    letter = parse_dead_letter(delivered.sent.record.headers)
    assert letter is not None
    reasons = (DeadLetterReason.EXPIRED, DeadLetterReason.BEYOND_MAX_DELAY)
    return is_to_be_resolved(accepted) and letter.reason in reasons


def complaints(outcome: Outcome) -> Complaints:
    """Yield what is wrong with the chains of a history."""
    if not outcome.setup.recurs:
        return
    after = followers(outcome)
    left = _by_place(outcome)
    for place, accepted in outcome.source.items():
        if not goes_on(accepted):
            continue
        behind = after.get(place, [])
        if is_to_be_resolved(accepted) and any(not delivered.dead for delivered in left.get(place, [])):
            yield f"delivered unresolved: {_text(accepted)}"
        if len(behind) > 1 and outcome.setup.transactional:
            yield f"forked: {_text(accepted)} is followed by {[each.place for each in behind]}"
        yield from _followed(outcome, accepted, behind, left.get(place, []))


def _followed(
    outcome: Outcome, accepted: Accepted, behind: Sequence[Accepted], left: Sequence[Delivered]
) -> Complaints:
    """A record that has left is followed by what its rule has next, as of when it left, in the same transaction."""
    command = accepted.command
    assert isinstance(command, Schedule)
    letters = [delivered for delivered in left if delivered.dead]
    if is_to_be_resolved(accepted):
        for each in behind:
            number, slot_ms, due_ms = _occurrence(each)
            recurrence = _recurrence(accepted, command.timestamp_ms or 0)
            if number != 1 or not slot_ms <= due_ms < slot_ms + max(1, recurrence.jitter_ms):
                yield f"wrong first occurrence: {_text(each)}"
            if letters and outcome.setup.transactional:
                yield f"refused and resolved: {_text(accepted)}"
        return
    times = _times(left)
    wanted = {_next(accepted, at_ms) for at_ms in times}
    # Without transactions a crash may part a delivery from what follows it; a later command then ends both.
    ended = not outcome.setup.transactional and outcome.later_commands(accepted)
    if not behind and left and None not in wanted and not letters and not ended:
        yield f"chain lost: {_text(accepted)} has left, and nothing follows it; {wanted} should"
    if not outcome.setup.transactional:
        return
    for each in behind:
        if _occurrence(each) not in wanted:
            yield f"wrong occurrence: {_text(each)} after {_text(accepted)}, which left at {times}; not one of {wanted}"
        commits = {delivered.commit for delivered in left}
        if each.commit not in commits:
            yield f"apart: {_text(each)} was written with commit {each.commit}, and what it follows left with {commits}"


@cache
def _read(headers: tuple[tuple[str, bytes | None], ...], timestamp_ms: int) -> Recurrence:
    recurrence = read_recurrence(dict(headers), timestamp_ms)
    assert recurrence is not None
    return recurrence


def _recurrence(accepted: Accepted, timestamp_ms: int) -> Recurrence:
    return _read(tuple(accepted.record.record_headers or ()), timestamp_ms)


def _occurrence(accepted: Accepted) -> Occurrence:
    assert isinstance(accepted.command, Schedule | Reject)
    assert accepted.command.due_ms is not None
    text = dict(accepted.record.record_headers or ())[HEADER] or b""
    number, slot_ms = map(int, text.split(b":"))
    return Occurrence(number, slot_ms, accepted.command.due_ms)


def _next(accepted: Accepted, at_ms: int) -> Occurrence | None:
    assert isinstance(accepted.command, Schedule)
    former, name = _occurrence(accepted), accepted.command.id or b""
    found, _ = next_occurrence(_recurrence(accepted, former.nominal_ms), name, former, at_ms)
    return found


def _text(accepted: Accepted) -> str:
    what = "unresolved" if is_to_be_resolved(accepted) else str(tuple(_occurrence(accepted)))
    return f"{accepted.place[0]}:{accepted.place[1]} ({what})"
