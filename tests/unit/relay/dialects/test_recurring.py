from __future__ import annotations

import json
from datetime import UTC, timedelta, timezone, tzinfo

import pytest
from tests.support.relay.native_records import KEY, OFFSET, POLICY, TIMESTAMP_MS, VALUE, Header, native, record, reject

from delaytopic_api.records import DeadLetterReason
from delaytopic_relay.core.commands import OCCURRENCE, TO_BE_RESOLVED, Cancel, Record, Reject, Rewritten, Schedule
from delaytopic_relay.dialects.kaspr import KasprDialect
from delaytopic_relay.dialects.reading import RecordError, RoutePolicy, TopicGlobs
from delaytopic_relay.dialects.recurring import RecurringWriter
from delaytopic_relay.dialects.writing import Draft, Following, Sending

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
TEN = TIMESTAMP_MS + 20 * HOUR_MS
"""2026-11-22T10:00:00Z; the record was produced on the day before, at 14:00."""
SENDING = Sending("source", 3, TIMESTAMP_MS)
ROUTE = RoutePolicy("shop.reminders", TopicGlobs([]), 30 * DAY_MS)
ID: Header = ("deliver-id", b"a")
AT_TEN: list[Header] = [ID, ("deliver-cron", b"0 10 * * *"), ("deliver-tz", b"Europe/Nowhere")]


def in_utc(name: str) -> tzinfo:
    """A zone of a tzdata by which it is in UTC."""
    return UTC


def an_hour_ahead(name: str) -> tzinfo:
    """The same zone in a later tzdata: somebody has moved it to the east."""
    return timezone(timedelta(hours=1))


def resolved(*headers: Header, zones: object = in_utc, sent_ms: int = TIMESTAMP_MS) -> Record:
    """Return the record that a relay writes into the source when it resolves one."""
    writer = RecurringWriter(ROUTE, zones)  # type: ignore[arg-type]
    command = native().read(record(*headers))
    assert isinstance(command, Schedule)
    written = writer.rewrite(Rewritten(command, OFFSET, goes_on=True), SENDING._replace(sent_ms=sent_ms)).record
    assert written is not None
    return written


def read_again(written: Record, offset: int = OFFSET + 7) -> Schedule:
    """The command that the written record is where it is read."""
    command = native().read(record(*written.headers, key=written.key, value=written.value, offset=offset))
    assert isinstance(command, Schedule)
    return command


def test_a_record_with_a_rule_is_due_at_once_and_to_be_resolved() -> None:
    message = record(*AT_TEN)

    assert native().read(message) == Schedule(
        TIMESTAMP_MS, OFFSET, KEY, VALUE, message.headers(), TO_BE_RESOLVED, b"a", timestamp_ms=TIMESTAMP_MS
    )


def test_what_a_relay_writes_states_the_instant_the_number_the_slot_and_the_rank() -> None:
    assert resolved(*AT_TEN) == Record(
        "source",
        VALUE,
        KEY,
        [
            *AT_TEN,
            ("delay-occurrence", b"1:%d" % TEN),
            ("delay-restated", b"%d:3:%d:%d:source" % (TEN, OFFSET, OFFSET)),
        ],
        3,
    )


def test_an_occurrence_is_read_as_a_schedule_with_the_rank_of_what_it_follows() -> None:
    written = resolved(*AT_TEN)

    assert read_again(written) == Schedule(
        *(TEN, OFFSET + 7, KEY, VALUE, written.headers, OCCURRENCE, b"a"), timestamp_ms=TIMESTAMP_MS, rank=OFFSET
    )


def test_what_waits_keeps_its_instant_when_tzdata_changes_and_the_next_has_the_new_rule() -> None:
    waiting = read_again(resolved(*AT_TEN, zones=in_utc))

    # When a relay with a later tzdata delivers it, and writes the next one
    later = RecurringWriter(ROUTE, an_hour_ahead)
    following = later.rewrite(Rewritten(waiting, waiting.offset, goes_on=True), SENDING._replace(sent_ms=TEN)).record

    assert waiting.due_ms == TEN
    assert following is not None
    assert read_again(following, waiting.offset + 1).due_ms == TEN + DAY_MS - HOUR_MS


def test_an_occurrence_is_delivered_with_its_number_and_slot_and_without_control_headers() -> None:
    occurrence = read_again(resolved(("trace", b"1"), *AT_TEN))

    assert RecurringWriter(ROUTE, in_utc).write(occurrence, SENDING) == [
        ("trace", b"1"),
        ("delay-occurrence", b"1:%d" % TEN),
    ]


def test_an_interval_is_counted_from_the_first_record_through_all_occurrences() -> None:
    occurrence = read_again(resolved(ID, ("deliver-every", b"1h")))

    # When each one is delivered a minute late
    due = [occurrence.due_ms]
    for number in range(1, 4):
        late = SENDING._replace(sent_ms=occurrence.due_ms + 60_000)
        following = RecurringWriter(ROUTE).rewrite(Rewritten(occurrence, occurrence.offset, goes_on=True), late)
        assert following.record is not None
        occurrence = read_again(following.record, OFFSET + 7 + number)
        due.append(occurrence.due_ms)

    assert due == [TIMESTAMP_MS + hours * HOUR_MS for hours in range(1, 5)]


@pytest.mark.parametrize(
    "end",
    [("deliver-count", b"1"), ("deliver-until", b"%d" % (TIMESTAMP_MS + HOUR_MS))],
    ids=["count", "until"],
)
def test_nothing_follows_the_last_occurrence(end: Header) -> None:
    last = read_again(resolved(ID, ("deliver-every", b"1h"), end))

    written = RecurringWriter(ROUTE).rewrite(
        Rewritten(last, last.offset, goes_on=True), SENDING._replace(sent_ms=last.due_ms)
    )

    assert written == Following(None)


def test_slots_that_are_past_when_an_occurrence_is_delivered_are_counted_as_missed() -> None:
    occurrence = read_again(resolved(ID, ("deliver-every", b"1h")))

    # When it is delivered three hours and a half late: the newest slot of these is next
    late = SENDING._replace(sent_ms=occurrence.due_ms + 3 * HOUR_MS + HOUR_MS // 2)
    following = RecurringWriter(ROUTE).rewrite(Rewritten(occurrence, occurrence.offset, goes_on=True), late)

    assert following.record is not None
    assert read_again(following.record, OFFSET + 8).due_ms == occurrence.due_ms + 3 * HOUR_MS
    assert following.missed == 2


def test_a_withdrawn_occurrence_is_followed_by_a_cancel_that_counts_as_the_rank_behind_it() -> None:
    occurrence = read_again(resolved(*AT_TEN))

    written = RecurringWriter(ROUTE, in_utc).rewrite(Rewritten(occurrence, OFFSET + 1), SENDING).record

    assert written is not None
    assert native().read(record(*written.headers, key=KEY, value=None, offset=OFFSET + 9)) == Cancel(
        OFFSET + 9, b"a", OFFSET + 1
    )


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([ID, ("deliver-ladder", b"1h"), ("deliver-at", b"%d" % TIMESTAMP_MS)], DeadLetterReason.EXPIRED),
        ([ID, ("deliver-cron", b"0 0 1 6 *")], DeadLetterReason.BEYOND_MAX_DELAY),
        ([ID, ("deliver-cron", b"0 0 * * *"), ("deliver-tz", b"Nowhere")], DeadLetterReason.MALFORMED_HEADER),
    ],
    ids=["no slot left", "beyond maxDelay", "unknown zone"],
)
def test_a_record_without_an_occurrence_within_max_delay_is_refused_when_it_is_resolved(
    headers: list[Header], reason: DeadLetterReason
) -> None:
    command = native().read(record(*headers))
    assert isinstance(command, Schedule)

    rungs_missed = [*headers, ("deliver-missed", b"None")] if "ladder" in headers[1][0] else headers
    command = native().read(record(*rungs_missed))
    assert isinstance(command, Schedule)
    with pytest.raises(RecordError) as refused:
        RecurringWriter(ROUTE).rewrite(Rewritten(command, OFFSET, goes_on=True), SENDING)

    assert refused.value.reason is reason


def test_a_rule_needs_an_id() -> None:
    message = record(("deliver-every", b"1h"))

    assert native().read(message) == reject(
        message,
        DeadLetterReason.MALFORMED_HEADER,
        "a record that recurs, or that names a local time, needs an id: add header deliver-id",
    )


def test_an_interval_above_max_delay_is_refused_when_it_is_read() -> None:
    message = record(ID, ("deliver-every", b"721h"))

    command = native().read(message)

    assert isinstance(command, Reject)
    assert command.reason is DeadLetterReason.BEYOND_MAX_DELAY


@pytest.mark.parametrize("rank", [OFFSET, OFFSET + 1])
def test_a_place_that_no_relay_can_have_written_counts_for_nothing(rank: int) -> None:
    forged = ("delay-restated", b"%d:3:%d:%d:source" % (TEN, rank, rank))
    command = native().read(record(*AT_TEN, ("delay-occurrence", b"1:%d" % TEN), forged))

    assert isinstance(command, Schedule)
    assert (command.due_ms, command.control, command.rank) == (TIMESTAMP_MS, TO_BE_RESOLVED, None)


def test_an_occurrence_that_later_rules_do_not_allow_is_refused_as_what_a_relay_has_written() -> None:
    # Whoever waits for it on its way waits no more.
    written = resolved(*AT_TEN)
    message = record(*written.headers, offset=OFFSET + 7)

    command = native(max_delay_ms=HOUR_MS).read(message)

    assert isinstance(command, Reject)
    assert (command.reason, command.id, command.due_ms, command.rank) == (
        DeadLetterReason.BEYOND_MAX_DELAY,
        b"a",
        TEN,
        OFFSET,
    )


def test_a_dead_letter_of_an_occurrence_can_be_sent_again_as_the_record_that_it_was() -> None:
    written = resolved(*AT_TEN)
    refused = Reject(OFFSET + 7, KEY, VALUE, written.headers, DeadLetterReason.TOO_LARGE, "too large")

    letter = RecurringWriter(POLICY).letter(refused, SENDING)

    assert letter == Draft(KEY, VALUE, [*AT_TEN, ("delay-occurrence", b"1:%d" % TEN)])


def test_what_recurs_in_kaspr_is_written_as_a_native_occurrence_and_read_so_by_kaspr() -> None:
    kaspr, writer = KasprDialect(ROUTE), RecurringWriter(ROUTE, in_utc)
    asked: list[Header] = [
        ("x-scheduler-action", b"CRON_ADD"),
        ("x-scheduler-request-id", b"a"),
        ("x-scheduler-cron-expr", b"0 10 * * *  30"),
        ("x-scheduler-deliver-to", b"shop.reminders"),
        ("x-scheduler-cron-missed-fire-policy", b"skip"),
        ("trace", b"7"),
    ]

    command = kaspr.read(record(*asked))
    assert isinstance(command, Schedule)
    written = writer.rewrite(Rewritten(command, OFFSET, goes_on=True), SENDING).record
    assert written is not None
    occurrence = kaspr.read(record(*written.headers, key=written.key, value=written.value, offset=OFFSET + 7))

    rule = [ID, ("deliver-cron", b"30 0 10 * * *"), ("deliver-missed", b"None")]
    slot = TEN + 30_000
    assert (command.due_ms, command.control, command.id) == (TIMESTAMP_MS, TO_BE_RESOLVED, b"a")
    assert written.headers == [
        ("trace", b"7"),
        *rule,
        ("delay-occurrence", b"1:%d" % slot),
        ("delay-restated", b"%d:3:%d:%d:source" % (slot, OFFSET, OFFSET)),
    ]
    assert occurrence == Schedule(
        *(slot, OFFSET + 7, KEY, VALUE, written.headers, OCCURRENCE, b"a"), timestamp_ms=TIMESTAMP_MS, rank=OFFSET
    )
    assert writer.write(occurrence, SENDING) == [("trace", b"7"), ("delay-occurrence", b"1:%d" % slot)]


def test_a_withdrawal_that_a_relay_has_written_is_a_cancel_for_kaspr() -> None:
    withdrawal: list[Header] = [ID, ("deliver-action", b"cancel"), ("delay-restated", b":3:1:2:source")]

    assert KasprDialect(ROUTE).read(record(*withdrawal)) == Cancel(OFFSET, b"a", 2)


def test_a_rejection_of_what_recurs_in_kaspr_has_none_of_our_headers() -> None:
    headers = [("trace", b"7"), ID, ("deliver-cron", b"0 10 * * *")]
    refused = Reject(OFFSET, KEY, VALUE, headers, DeadLetterReason.BEYOND_MAX_DELAY, "it is too far")

    draft = KasprDialect(ROUTE).letter(refused, SENDING)

    assert json.loads(draft.value or b"")["headers"] == {"trace": "7"}
