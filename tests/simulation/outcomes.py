"""The promises of outcomes: each schedule has exactly one, and it is true, compared with what was delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tests.simulation import recurring
from tests.simulation.outcome import Accepted, Delivered, Outcome, Place, Told

from delaytopic_api.records import DELIVER_ID, DELIVER_REQUESTED_BY, Receipt
from delaytopic_api.relay import Ending, RecordPlace
from delaytopic_relay.core.commands import Cancel, Reject, Schedule


def complaints(outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with the outcomes of a history."""
    if not outcome.setup.outcomes:
        return
    by_place: dict[Place, list[Told]] = {}
    for each in outcome.told:
        by_place.setdefault(each.place, []).append(each)
    yield from _each_once(outcome, by_place)
    yield from _in_its_place(outcome)
    if outcome.setup.transactional:
        yield from _true(outcome)
        yield from _not_pending(outcome, by_place)


def _each_once(outcome: Outcome, by_place: Mapping[Place, Sequence[Told]]) -> Iterator[str]:
    ended_by = Counter(
        (each.place[0], each.document.ended_by.offset)
        for each in outcome.told
        if each.document.outcome is Ending.CANCELLED and each.document.ended_by is not None
    )
    after = recurring.followers(outcome)
    recurring_ids = recurring.ids_of(outcome)
    for accepted in outcome.source.values():
        of_it, exact = by_place.get(accepted.place, []), outcome.setup.transactional
        count = len(of_it) + ended_by[accepted.place] * isinstance(accepted.command, Cancel)
        if recurring.is_to_be_resolved(accepted) and after.get(accepted.place):
            # It has not ended: its occurrences have.
            count += 1
        if not exact and _id_of(accepted) in recurring_ids:
            # What it asks for may have been written twice by a relay, and be told of once, or as ended by another.
            count = max(count, 1)
        if count == 0:
            yield f"no outcome: {_text(accepted)}"
        elif count > 1 and exact:
            yield f"{count} outcomes: {_text(accepted)}: {[each.text for each in of_it]}"
        wanted = _endings_of(accepted)
        for each in of_it:
            if each.document.outcome not in wanted and not _by_a_zombies_rules(outcome, each):
                yield f"outcome of another kind: {each.text}, of {_text(accepted)}"


def _id_of(accepted: Accepted) -> bytes | None:
    command = accepted.command
    return command.id if isinstance(command, Schedule | Cancel) else None


def _endings_of(accepted: Accepted) -> set[Ending]:
    if isinstance(accepted.command, Cancel):
        return {Ending.NOT_PENDING}
    if isinstance(accepted.command, Reject) and not recurring.is_written(accepted):
        return {Ending.DEAD_LETTERED}
    return {*Ending} - {Ending.NOT_PENDING}


def _in_its_place(outcome: Outcome) -> Iterator[str]:
    """Key and partition are those by which readers look, and id and due time are the schedule's."""
    for each in outcome.told:
        if _by_a_zombies_rules(outcome, each):
            continue
        accepted, record, document = outcome.source[each.place], each.sent.record, each.document
        command = accepted.command
        name = command.id if isinstance(command, Schedule | Cancel | Reject) else None
        if name is None and isinstance(command, Reject):
            name = dict(command.headers or ()).get(DELIVER_ID)
        key = name if name is not None else b"source:%d:%d" % each.place
        if (record.key, record.partition) != (key, each.place[0]):
            yield f"outcome under another key or partition: {each.text}, {record.key!r}"
        if document.id != (name.decode() if name is not None else None):
            yield f"outcome with another id: {each.text}, {document.id}"
        if isinstance(command, Schedule) and document.due_ms != command.due_ms:
            yield f"outcome with another due time: {each.text}, {document.due_ms} of {_text(accepted)}"
        asked = accepted if document.ended_by is None else outcome.source.get((each.place[0], document.ended_by.offset))
        headers = asked.record.record_headers if asked is not None else None
        by = dict(headers or ()).get(DELIVER_REQUESTED_BY)
        if document.requested_by != (by.decode() if by is not None else None):
            yield f"outcome that names another who asked: {each.text}, {document.requested_by}"


def _by_a_zombies_rules(outcome: Outcome, told: Told) -> bool:
    """Tell whether a zombie may have told it that nothing fences, and that reads by rules of before an edit."""
    return told.commit is None and outcome.setup.rules is not None


def _true(outcome: Outcome) -> Iterator[str]:
    """Yield what is told and does not agree with what left, in one transaction, or with the command that ended it."""
    left = {delivered.place: delivered for delivered in outcome.delivered}
    for each in outcome.told:
        delivered, ending = left.get(each.place), each.document.outcome
        if ending in (Ending.DELIVERED, Ending.DEAD_LETTERED):
            yield from _left(each, delivered)
        elif delivered is not None:
            yield f"{each.text}, and it left, commit {delivered.commit}"
        elif ending is not Ending.NOT_PENDING:
            yield from _ended_by(outcome, each)


def _left(each: Told, delivered: Delivered | None) -> Iterator[str]:
    dead = each.document.outcome is Ending.DEAD_LETTERED
    if delivered is None or delivered.dead != dead:
        yield f"{each.text}, and nothing such left"
    elif delivered.commit != each.commit:
        yield f"{each.text}, and it left with commit {delivered.commit}"
    elif each.document.target != RecordPlace(
        topic=delivered.sent.record.topic, partition=max(0, delivered.sent.record.partition), offset=delivered.number
    ):
        yield f"{each.text} at {each.document.target}, and it is at {delivered.number}"
    elif not dead and each.document.ended_ms != _sent_ms(delivered):
        yield f"{each.text} at {each.document.ended_ms}, and its receipt says {_sent_ms(delivered)}"


def _sent_ms(delivered: Delivered) -> int:
    return Receipt.parse(delivered.sent.record.headers[-1][1]).sent_ms


def _ended_by(outcome: Outcome, each: Told) -> Iterator[str]:
    by = each.document.ended_by
    command = outcome.source[each.place[0], by.offset].command if by is not None else None
    ended = outcome.source[each.place].command
    kind = Cancel if each.document.outcome is Ending.CANCELLED else Schedule
    if not isinstance(command, kind) or not isinstance(ended, Schedule | Reject) or command.id != ended.id:
        yield f"{each.text}, which is no such command"
    elif by is not None and by.offset <= (ended.rank if ended.rank is not None else ended.offset):
        yield f"{each.text}, which came before it"


def _not_pending(outcome: Outcome, by_place: Mapping[Place, Sequence[Told]]) -> Iterator[str]:
    """Of a cancel that met nothing, all schedules of its id in front of it had ended."""
    after = recurring.followers(outcome)
    for each in outcome.told:
        if each.document.outcome is not Ending.NOT_PENDING or each.commit is None:
            continue
        cancel = outcome.source[each.place].command
        assert isinstance(cancel, Cancel)
        for place, accepted in outcome.source.items():
            command = accepted.command
            if place[0] != each.place[0] or place[1] > each.place[1] or not isinstance(command, Schedule):
                continue
            if command.id == cancel.id and not (recurring.is_to_be_resolved(accepted) and place in after):
                late = [end.text for end in by_place.get(place, []) if end.commit is None or end.commit > each.commit]
                if late:
                    yield f"{each.text}, and {_text(accepted)} was pending: {late}"


def _text(accepted: Accepted) -> str:
    return f"{accepted.place[0]}:{accepted.place[1]} ({type(accepted.command).__name__.lower()})"
