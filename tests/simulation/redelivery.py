"""The promises of the dialect Redelivery, over whole chains: a START marker, and all that a relay has made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.simulation.outcome import Accepted, Delivered, Outcome

from delaytopic_api.records import ENDED, RECEIPT, RESTATED, Receipt
from delaytopic_relay.core.commands import Postpone, Schedule
from delaytopic_relay.dialects.markers import decode_marker
from delaytopic_relay.dialects.redelivery import COUNT

Complaints = Iterator[str]


def payload_of(schedule: Schedule) -> bytes | None:
    """Return what a START marker has redelivered."""
    return decode_marker(schedule.value or b"").value


def _redeliveries(outcome: Outcome) -> Iterator[tuple[Delivered, Accepted, Accepted]]:
    """Deliveries in exactly-once histories, each with its record and with the START marker that it began as."""
    if not (outcome.setup.redelivery and outcome.setup.transactional):
        return
    for delivered in outcome.delivered:
        accepted = outcome.source[delivered.place]
        if isinstance(accepted.command, Schedule):
            yield delivered, accepted, outcome.origin(accepted)


def twice(outcome: Outcome) -> Complaints:
    """Of a START marker comes one redelivery, or one dead letter."""
    times = Counter(origin.place for _, _, origin in _redeliveries(outcome))
    for place, count in times.items():
        if count > 1:
            yield f"chain twice: of the START marker {place} came {count} records"


def after_its_end(outcome: Outcome) -> Complaints:
    """Nothing is redelivered in a later transaction than the one that took its END, or another START, in."""
    for delivered, accepted, origin in _redeliveries(outcome):
        assert delivered.commit is not None
        for later in _later(outcome, origin):
            ingested = outcome.taken_in_by(later.place)
            if not isinstance(later.command, Postpone) and ingested is not None and ingested < delivered.commit:
                yield (
                    f"chain not withdrawn: {accepted.place}, begun as {origin.place}, left after {later.place} was read"
                )


def before_its_deadline(outcome: Outcome) -> Complaints:
    """Nothing is redelivered before a time that a KEEPALIVE marker has put it off to, once that was taken in."""
    for delivered, accepted, origin in _redeliveries(outcome):
        assert delivered.commit is not None
        if delivered.dead:
            continue
        sent_ms = min(Receipt.parse(delivered.sent.record.headers[-1][1]).sent_ms, delivered.sent.shown_ms)
        for later in _later(outcome, origin):
            if not isinstance(later.command, Postpone):
                break
            ingested = outcome.taken_in_by(later.place)
            if ingested is not None and ingested < delivered.commit and sent_ms < later.command.due_ms:
                yield (
                    f"chain early: {accepted.place}, begun as {origin.place}, was sent"
                    f" {later.command.due_ms - sent_ms} ms before the time that {later.place} had put it off to"
                )


def without_its_end(outcome: Outcome) -> Complaints:
    """A redelivery and its END marker in the source are there together, or neither."""
    if not outcome.setup.redelivery:
        return
    ends = [stone for stone in outcome.stones if any(name == ENDED for name, _ in stone.sent.record.headers)]
    deliveries = [
        delivered
        for delivered in outcome.delivered
        if not delivered.dead and isinstance(outcome.source[delivered.place].command, Schedule)
    ]
    ours, theirs = (Counter((each.place, each.commit) for each in some) for some in (deliveries, ends))
    lacking = (ours - theirs) + (theirs - ours)
    if not outcome.setup.transactional:
        # What was sent without it is sent again, unless it was replaced meanwhile.
        lone = ours.keys() - theirs.keys()
        lacking = Counter(each for each in lone if not outcome.later_commands(outcome.source[each[0]]))
    for place in lacking:
        yield f"alone: the delivery of {place} has no END marker, or that no delivery"


def altered(outcome: Outcome) -> Complaints:
    """P6: the payload of the START marker, its own headers, the count; then the receipt."""
    for delivered in outcome.delivered:
        accepted = outcome.source[delivered.place]
        if delivered.dead or not isinstance(accepted.command, Schedule):
            continue
        origin, sent = outcome.origin(accepted), delivered.sent.record
        own = [header for header in origin.record.record_headers or [] if header[0] != RESTATED]
        same = sent.headers[:-1] == [*own, (COUNT, b"1")] and sent.headers[-1][0] == RECEIPT
        marker = decode_marker(origin.record.record_value or b"")
        if (sent.key, sent.value) != (marker.key, marker.value) or not same:
            yield f"altered: {accepted.place} became {sent}"


def _later(outcome: Outcome, origin: Accepted) -> list[Accepted]:
    """The commands of applications for the same message, behind its START marker."""
    assert isinstance(origin.command, Schedule)
    assert origin.command.id is not None
    of_message = outcome.of_applications(origin.place[0], origin.command.id)
    return [accepted for accepted in of_message if accepted.place > origin.place]
