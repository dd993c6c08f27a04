"""Each promise as one function over the final logs of a history; what it returns is what is wrong.

P7 (nobody in between) is about operators and API servers, which this world does not have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tests.simulation import outcomes, recurring, redelivery
from tests.simulation.outcome import Accepted, Delivered, Outcome
from tests.simulation.quiet import BELIEVED_MS
from tests.simulation.relays import OTHER, TARGET, compares
from tests.simulation.world.kafka import START_MS
from tests.simulation.world.refusing import BAD_VALUES, HOPELESS, STAYS

from delaytopic_api.records import CONTROL_HEADERS, RECEIPT, RESTATED, DeadLetterReason, Receipt, parse_dead_letter
from delaytopic_relay.core.commands import Cancel, DueKey, Postpone, Reject, Schedule
from delaytopic_relay.core.progress import Progress
from delaytopic_relay.core.second_clock import BOUND_MS

LATE_MS = 250
"""The lateness allowed for a probe: the turns that the simulation itself makes it wait."""

Complaints = Iterator[str]
Promise = Callable[[Outcome], Complaints]


def lost(outcome: Outcome) -> Complaints:
    """P1: a record is delivered, dead-lettered, withdrawn by a later command, or itself no schedule.

    What waited of a former source is lost with it; what is in both logs may have been delivered from either.
    """
    seen = _records_seen(outcome)
    if not outcome.setup.transactional:
        # Written twice, an occurrence is delivered once: the first of both to leave goes on, whichever was read first.
        for copies in recurring.copies(outcome):
            if not seen.isdisjoint(id(each.record) for each in copies):
                seen |= {id(each.record) for each in copies}
        seen |= {id(each.record) for each in recurring.passed_over(outcome)}
    for accepted in outcome.source.values():
        if accepted.place[0] not in outcome.last_lives:
            continue
        if id(accepted.record) not in seen and not isinstance(accepted.command, Cancel | Postpone):
            if isinstance(accepted.command, Schedule | Reject) and outcome.later_commands(accepted):
                continue
            yield f"lost: {_text(accepted)}"


def ghosts(outcome: Outcome) -> Complaints:
    """P1: what leaves is a record that was in the source."""
    for delivered in outcome.delivered:
        if delivered.place not in outcome.source:
            yield f"ghost: {delivered.place} was delivered, and no source ever had it"


def comes_to_rest(outcome: Outcome) -> Complaints:
    """P1: with no more faults, nothing waits for ever."""
    if not outcome.rested:
        yield "never at rest: records still wait although nothing stands in their way"


def twice(outcome: Outcome) -> Complaints:
    """P2, ExactlyOnce: a `read_committed` reader sees each record once."""
    if outcome.setup.transactional:
        times = Counter(delivered.place for delivered in outcome.delivered)
        for place, count in times.items():
            if count > 1:
                yield f"twice: {place} was delivered {count} times"


def twice_without_a_fault(outcome: Outcome) -> Complaints:
    """P2, AtLeastOnce: duplicates only after something went wrong, if only a record that Kafka refused."""
    if not outcome.setup.transactional and not _disturbed(outcome):
        times = Counter(delivered.place for delivered in outcome.delivered)
        for place, count in times.items():
            if count > 1:
                yield f"twice: {place} was delivered {count} times, and nothing had gone wrong"


def beyond_the_tail(outcome: Outcome) -> Complaints:
    """P2: what was committed as done when a relay recovered, it does not deliver again."""
    for delivered in outcome.delivered:
        progress = delivered.life.recoveries.get(delivered.place[0])
        accepted = outcome.source[delivered.place]
        if progress is None:
            yield f"unowned: {_text(accepted)} was delivered by {delivered.life.relay}, which never recovered the shard"
        elif _is_done(accepted, progress):
            yield f"beyond the tail: {_text(accepted)} was committed before {delivered.life.relay} began"


def early(outcome: Outcome) -> Complaints:
    """P3: nothing is sent before its time by the relay's clock, nor with a receipt that says so."""
    for delivered, accepted in _deliveries(outcome):
        command = accepted.command
        if isinstance(command, Schedule) and not _by_a_zombies_rules(outcome, delivered):
            sent_ms = min(_receipt(delivered).sent_ms, delivered.sent.shown_ms)
            if sent_ms < command.due_ms:
                yield f"early: {_text(accepted)} was sent {command.due_ms - sent_ms} ms before its time"


def early_by_the_world(outcome: Outcome) -> Complaints:
    """P3: by the time as it is, too, of a relay that compares its clock, but for what two clocks may differ."""
    for delivered, accepted in _deliveries(outcome):
        number = int(delivered.life.relay.rpartition("-")[2])
        if not compares(outcome.setup, number) or not isinstance(accepted.command, Schedule):
            continue
        early_ms = accepted.command.due_ms - delivered.sent.at_ms - delivered.sent.shift_ms
        if early_ms > BOUND_MS and not _by_a_zombies_rules(outcome, delivered):
            yield f"early: {_text(accepted)} was sent {early_ms} ms before its time, by a clock that was wrong"


def early_by_the_moved_clock(outcome: Outcome) -> Complaints:
    """P3: a record counts from the time that the moved clock shows to whoever produces it."""
    for place in sorted(outcome.behind):
        yield f"early: {_text(outcome.source[place])} counts from a time before the clock was moved"


def late(outcome: Outcome) -> Complaints:
    """P4: what nothing disturbs leaves within the precision, and is visible then."""
    for delivered, accepted in _deliveries(outcome):
        if accepted.place not in outcome.probes or not isinstance(accepted.command, Schedule):
            continue
        visible_ms = outcome.commits[delivered.commit].at_ms if delivered.commit is not None else delivered.sent.at_ms
        visible_ms += delivered.sent.shift_ms
        if visible_ms > accepted.command.due_ms + LATE_MS + outcome.setup.precision_ms:
            yield f"late: {_text(accepted)} was visible {visible_ms - accepted.command.due_ms} ms after its time"


def out_of_order(outcome: Outcome) -> Complaints:
    """P5: of what was taken in before a tick, nothing leaves in it out of the order of (due, offset)."""
    if not outcome.setup.transactional:
        return
    last: dict[tuple[int, int], DueKey] = {}
    for delivered, accepted in _deliveries(outcome):
        assert delivered.commit is not None
        partition, offset = accepted.place
        before = outcome.before(partition, delivered.commit)
        if before is None or offset >= before.position:
            continue
        tick = (partition, delivered.commit)
        if before.done.has(*accepted.key) or accepted.key <= last.get(tick, before.cursor):
            yield f"out of order: {_text(accepted)} after {last.get(tick, before.cursor)}"
        last[tick] = accepted.key


def alone(outcome: Outcome) -> Complaints:
    """P2, with tombstones and history: a delivery, its tombstone and its copy are there together, or none of them."""
    if not outcome.setup.scheduler:
        return
    deliveries = [delivered for delivered, _ in _deliveries(outcome)]
    for what, beside in (("tombstone", outcome.stones), ("copy", outcome.copies)):
        ours, theirs = (Counter((each.place, each.commit) for each in some) for some in (deliveries, beside))
        if outcome.setup.transactional:
            lacking = (ours - theirs) + (theirs - ours)
        else:
            # Deliveries may be repeated. One that Kafka refuses becomes a dead letter, and what was sent with it stays.
            # One that a crash has parted from the rest is repeated whole, unless a later command withdraws it first.
            parted = ours.keys() - theirs.keys()
            lacking = Counter(each for each in parted if not outcome.later_commands(outcome.source[each[0]]))
        for place in lacking:
            yield f"alone: the delivery of {place} has no {what}, or that no delivery"


def altered(outcome: Outcome) -> Complaints:
    """P6: key, value and every header that is not a control header, in their order; then the receipt."""
    if outcome.setup.scheduler:
        yield from _altered_schedules(outcome)
        return
    if outcome.setup.redelivery:
        yield from redelivery.altered(outcome)
        return
    for delivered, accepted in _deliveries(outcome):
        record, sent = accepted.record, delivered.sent.record
        kept = [header for header in record.record_headers or [] if header[0] not in CONTROL_HEADERS]
        if recurring.goes_on(accepted):
            kept = [header for header in kept if header[0] != RESTATED]
        same = sent.headers[:-1] == kept and sent.headers[-1][0] == RECEIPT
        if (sent.key, sent.value) != (record.record_key, record.record_value) or not same:
            yield f"altered: {_text(accepted)} became {sent}"
        wanted = OTHER if ("deliver-to", b"other") in (record.record_headers or []) else TARGET
        if sent.topic != wanted:
            yield f"astray: {_text(accepted)} went to {sent.topic}"


def _altered_schedules(outcome: Outcome) -> Complaints:
    for delivered, accepted in _deliveries(outcome):
        record, sent = accepted.record, delivered.sent.record
        own = list(record.record_headers or [])
        same = sent.headers[: len(own)] == own and sent.headers[-1][0] == RECEIPT
        if (sent.key, sent.value) != (b"k", record.record_value) or not same:
            yield f"altered: {_text(accepted)} became {sent}"


def altered_dead_letters(outcome: Outcome) -> Complaints:
    """P6: a dead letter is the untouched record; its value is left out only where Kafka does not take it."""
    for delivered in outcome.delivered:
        if not delivered.dead:
            continue
        record, sent = outcome.source[delivered.place].record, delivered.sent.record
        if record.record_value not in (sent.value, HOPELESS):
            yield f"altered: the dead letter of {delivered.place} has the value {sent.value!r}"
        own = [header for header in record.record_headers or [] if header[0] != RESTATED]
        if sent.headers[: len(own)] != own and record.record_value != HOPELESS:
            yield f"altered: the dead letter of {delivered.place} has the headers {sent.headers}"


def misplaced(outcome: Outcome) -> Complaints:
    """Good records are delivered, bad ones are dead letters, expired ones only after their time."""
    for delivered in outcome.delivered:
        accepted = outcome.source[delivered.place]
        command = accepted.command
        if _by_a_zombies_rules(outcome, delivered):
            continue
        if isinstance(command, Cancel | Postpone):
            yield f"misplaced: {_text(accepted)} is no schedule"
        elif not delivered.dead and (not isinstance(command, Schedule) or _is_bad(outcome, command)):
            yield f"misplaced: {_text(accepted)} was delivered"
        elif delivered.dead and isinstance(command, Schedule) and not _is_bad(outcome, command):
            letter = parse_dead_letter(delivered.sent.record.headers)
            assert letter is not None
            expired = letter.reason == DeadLetterReason.EXPIRED and letter.at_ms > (command.expires_ms or letter.at_ms)
            # It may be sent no more when it is due: the allowed topics were edited.
            forbidden = letter.reason == DeadLetterReason.FORBIDDEN_TARGET and letter.at_ms >= command.due_ms
            unavailable = letter.reason == DeadLetterReason.TARGET_UNAVAILABLE and _was_silent(outcome, delivered)
            ended = recurring.may_be_refused(accepted, delivered)
            if not expired and not unavailable and not ended and not (forbidden and outcome.setup.rules is not None):
                yield f"misplaced: {_text(accepted)} is a dead letter: {letter.detail}"


def _was_silent(outcome: Outcome, delivered: Delivered) -> bool:
    """Tell whether the further target took nothing when a record became a dead letter, or not long before."""
    at_ms = delivered.sent.at_ms
    of_it = [each for each in outcome.silences if each.destination.topic == OTHER]
    return any(each.from_ms <= at_ms < each.until_ms + BELIEVED_MS for each in of_it)


def _by_a_zombies_rules(outcome: Outcome, delivered: Delivered) -> bool:
    """Tell whether a record may have been read by rules of before an edit, by a zombie that nothing fences."""
    return delivered.commit is None and (outcome.setup.rules is not None or outcome.setup.moves)


def _is_bad(outcome: Outcome, schedule: Schedule) -> bool:
    """Tell whether Kafka refuses what a schedule delivers."""
    value = redelivery.payload_of(schedule) if outcome.setup.redelivery else schedule.value
    return value in (*BAD_VALUES, STAYS)


def not_withdrawn(outcome: Outcome) -> Complaints:
    """Latest wins: nothing is delivered in a later transaction than the one that took a later command in."""
    if not outcome.setup.transactional:
        return
    for delivered, accepted in _deliveries(outcome):
        assert delivered.commit is not None
        for later in outcome.later_commands(accepted):
            ingested = outcome.taken_in_by(later.place)
            if ingested is not None and ingested < delivered.commit:
                yield f"not withdrawn: {_text(accepted)} was delivered after {_text(later)} had been taken in"


def wrongly_withdrawn(outcome: Outcome) -> Complaints:
    """Latest wins: only a command that was produced before a schedule's turn takes it away.

    It need not be committed as taken in: an owner that died may have told the backlog of it.
    """
    if not outcome.setup.transactional:
        return
    seen = _records_seen(outcome)
    for accepted in outcome.source.values():
        if id(accepted.record) in seen or not isinstance(accepted.command, Schedule):
            continue
        done = outcome.passed_by(accepted.place, accepted.key)
        produced_ms = [later.record.time_ms for later in outcome.later_commands(accepted)]
        if done is not None and produced_ms and min(produced_ms) > outcome.commits[done].at_ms:
            yield f"wrongly withdrawn: {_text(accepted)} was passed over before there was any later command"


def ledger(outcome: Outcome) -> Complaints:
    """The invariant: P never goes back, nor what is done, and what a transaction delivers lies below it."""
    last: dict[int, Progress] = {}
    for commit in outcome.commits:
        for partition, progress in commit.progress.items():
            was = last.get(partition)
            if outcome.setup.transactional and was is not None and not _keeps(was, progress):
                yield f"ledger: {partition} went back from {was} to {progress} by {commit.relay}"
            last[partition] = progress
    for delivered, accepted in _deliveries(outcome):
        if delivered.commit is None:
            continue
        after = outcome.commits[delivered.commit].progress.get(accepted.place[0])
        if after is None or accepted.place[1] >= after.position or not after.done.has(*accepted.key):
            yield f"ledger: {_text(accepted)} was delivered with {after}"


PROMISES: Sequence[Promise] = (
    lost,
    comes_to_rest,
    twice,
    twice_without_a_fault,
    beyond_the_tail,
    early,
    early_by_the_world,
    early_by_the_moved_clock,
    late,
    out_of_order,
    alone,
    altered,
    altered_dead_letters,
    misplaced,
    not_withdrawn,
    wrongly_withdrawn,
    ledger,
    redelivery.twice,
    redelivery.after_its_end,
    redelivery.before_its_deadline,
    redelivery.without_its_end,
    outcomes.complaints,
    recurring.complaints,
)


def complaints(outcome: Outcome) -> list[str]:
    """Everything that is wrong with a history."""
    # All else speaks of records that the source has, or had.
    if found := [*ghosts(outcome)]:
        return found
    return [complaint for promise in PROMISES for complaint in promise(outcome)]


def _records_seen(outcome: Outcome) -> set[int]:
    """Return the records that left in any life of the source; a record may be in the logs of several.

    One that is only resolved has left once its first occurrence is there.
    """
    seen = {id(outcome.source[delivered.place].record) for delivered in outcome.delivered}
    if outcome.setup.recurs:
        resolved = [outcome.source[place] for place in recurring.followers(outcome)]
        seen |= {id(each.record) for each in resolved if recurring.is_to_be_resolved(each)}
    return seen


def _deliveries(outcome: Outcome) -> Iterator[tuple[Delivered, Accepted]]:
    """Deliveries of schedules to targets, in order."""
    for delivered in outcome.delivered:
        accepted = outcome.source[delivered.place]
        if not delivered.dead and isinstance(accepted.command, Schedule):
            yield delivered, accepted


def _is_done(accepted: Accepted, progress: Progress) -> bool:
    if not isinstance(accepted.command, Schedule):
        return False
    return accepted.place[1] < progress.position and progress.done.has(*accepted.key)


def _keeps(was: Progress, now: Progress) -> bool:
    """Tell whether all that was done still is."""
    if now.position < was.position:
        return False
    up_to = [(was.position, was.cursor), *([was.ahead] if was.ahead is not None else [])]
    return all(
        until <= now.cursor
        or (now.ahead is not None and now.ahead.before >= min(before, was.position) and until <= now.ahead.until)
        for before, until in up_to
    )


def _receipt(delivered: Delivered) -> Receipt:
    return Receipt.parse(delivered.sent.record.headers[-1][1])


def _disturbed(outcome: Outcome) -> bool:
    quiet = ("sent", "commits", "puts", "aborted records")
    wrong = (name for name, count in outcome.counts.items() if count > 0 and name not in quiet)
    return any(not name.startswith("path:") or name == "path: record refused" for name in wrong)


def _text(accepted: Accepted) -> str:
    """A record, with times relative to the beginning of the history."""
    partition, offset = accepted.place
    if isinstance(accepted.command, Schedule):
        name = f", id {accepted.command.id.decode()}" if accepted.command.id is not None else ""
        return f"{partition}:{offset} (due at {accepted.command.due_ms - START_MS}{name})"
    return f"{partition}:{offset} ({type(accepted.command).__name__.lower()})"
