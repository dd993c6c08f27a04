"""Records refused for a timestamp ahead of the clock, or for too many ids: the same each time they are read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.properties import QUICK
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.in_world import DEAD, dead_offsets, delivered_offsets, produce, start
from tests.support.relay.schedules import schedule
from tests.support.relay.world import World

from delaytopic_api.records import DeadLetterReason, parse_dead_letter
from delaytopic_relay.core.admission_limits import (
    NOTHING_MS,
    Admission,
    AdmissionLimits,
    decode_admission_limits,
    encode_admission_limits,
)
from delaytopic_relay.core.bucket_state import LARGEST
from delaytopic_relay.core.commands import NO_CONTROL_HEADER, NOTHING_DELIVERED, TO_BE_RESOLVED, DueKey, Schedule

NOW_MS = 1_795_269_600_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MAX_DELAY_MS = 8 * DAY_MS
LATEST_MS = NOW_MS + MAX_DELAY_MS + 2 * DAY_MS


def renewed(admission: Admission, now_ms: int = NOW_MS, offset: int = 0, *, ids_share: float = 0) -> Admission:
    admission.renew(now_ms, offset, MAX_DELAY_MS, ids_share=ids_share)
    return admission


def by_relay(due_ms: int, offset: int) -> Schedule:
    """A schedule that a relay has written again."""
    return Schedule(due_ms, offset, None, b"v", None, id=b"id", rank=0)


def reason(admission: Admission, due_ms: int, offset: int, name: bytes | None = None) -> DeadLetterReason | None:
    refused = admission.refusal(schedule(due_ms, offset, name))
    return refused.reason if refused is not None else None


def test_a_record_due_later_than_the_longest_delay_from_now_and_a_tolerance_is_refused() -> None:
    admission = renewed(Admission([]))

    assert [reason(admission, LATEST_MS + after_ms, 7) for after_ms in (0, 1)] == [None, "beyond-max-delay"]


def test_while_nothing_is_refused_terms_move_on_and_there_is_nothing_to_commit() -> None:
    admission = renewed(Admission([]))

    for day in range(100):
        renewed(admission, NOW_MS + day * DAY_MS, day)

    assert (admission.kept(NOTHING_DELIVERED), reason(admission, LATEST_MS + 98 * DAY_MS, 50)) == ((), None)


def test_what_was_refused_stays_refused_when_later_terms_would_allow_it() -> None:
    admission = renewed(Admission([]))
    assert reason(admission, LATEST_MS + 1, 7) == "beyond-max-delay"

    renewed(admission, NOW_MS + 5 * DAY_MS, 8)
    successor = Admission(admission.kept(NOTHING_DELIVERED))

    assert [reason(successor, LATEST_MS + 1, offset) for offset in (7, 8)] == ["beyond-max-delay", None]


def test_schedules_with_an_id_are_refused_from_when_ids_are_too_many_until_an_hour_after() -> None:
    admission = renewed(Admission([]))
    renewed(admission, NOW_MS, 5, ids_share=1.5)

    renewed(admission, NOW_MS + DAY_MS - 1, 10)
    soon = [reason(admission, NOW_MS, 10, name) for name in (b"a", None)]
    renewed(admission, NOW_MS + DAY_MS, 20)

    assert soon == ["too-many-ids", None]
    assert [reason(admission, NOW_MS, offset, b"a") for offset in (4, 5, 19, 20)] == [
        *(None, "too-many-ids", "too-many-ids", None)
    ]


def test_a_record_that_recurs_is_not_told_to_leave_out_the_id_that_it_needs() -> None:
    admission = renewed(Admission([]))
    renewed(admission, NOW_MS, 5, ids_share=1.5)

    plain, recurring = (
        admission.refusal(Schedule(NOW_MS, 5, None, b"v", None, control, id=b"id"))
        for control in (NO_CONTROL_HEADER, TO_BE_RESOLVED)
    )

    assert plain is not None
    assert recurring is not None
    assert plain.detail.endswith("; without header deliver-id it would be")
    assert recurring.detail.endswith("; what recurs needs its id: send it again then")


def test_what_relays_have_written_is_taken_in_while_ids_are_too_many_up_to_twice_their_memory() -> None:
    admission = Admission([])
    for offset, ids_share in enumerate((0.9, 1.1, 2, 2.1, 1.9)):
        renewed(admission, NOW_MS, offset, ids_share=ids_share)
        admission.refusal(schedule(NOW_MS, offset, b"a"))

    assert [admission.refusal(by_relay(NOW_MS, offset)) is None for offset in range(5)] == [
        *(True, True, True, False, False)
    ]


def test_limits_whose_records_are_done_become_one_that_allows_nothing_more() -> None:
    limits = [
        AdmissionLimits(0, 10, True),
        AdmissionLimits(5, 20, False),
        AdmissionLimits(9, 30, True),
        AdmissionLimits(12, 40, True),
    ]

    kept = Admission(limits).kept(DueKey(25, 0))

    assert kept == (
        AdmissionLimits(0, NOTHING_MS, False, 0, False),
        AdmissionLimits(9, 30, True),
        AdmissionLimits(12, 40, True),
    )


NUMBERS = st.integers(0, LARGEST)
IDS = st.sampled_from([(True, True), (False, True), (False, False)])
LIMITS = st.builds(
    lambda since, latest_ms, ids, size: AdmissionLimits(since, latest_ms, ids[0], size, ids[1]),
    *(NUMBERS, NUMBERS | st.just(NOTHING_MS), IDS, NUMBERS),
)


@given(st.lists(LIMITS, min_size=1, max_size=5))
def test_limits_survive_their_text(limits: list[AdmissionLimits]) -> None:
    assert decode_admission_limits(encode_admission_limits(limits)) == tuple(limits)


KIND_IDS = {"plain": None, "named": b"id"}
STEPS = st.lists(
    st.tuples(
        st.integers(-HOUR_MS, 3 * DAY_MS),
        st.sampled_from([0, 1.5, 3]),
        st.lists(st.tuples(st.integers(-DAY_MS, 30 * DAY_MS), st.sampled_from([*KIND_IDS, "written"])), max_size=4),
        st.sampled_from(["go on", "deliver", "die"]),
    ),
    max_size=30,
)


@given(STEPS)
@QUICK
def test_whatever_is_read_again_is_decided_as_it_was_unless_it_is_done(
    steps: list[tuple[int, float, list[tuple[int, str]], str]],
) -> None:
    admission, now_ms, cursor = Admission([]), NOW_MS, NOTHING_DELIVERED
    decided: list[tuple[Schedule, bool]] = []
    for after_ms, ids_share, records, then in steps:
        now_ms += after_ms
        renewed(admission, now_ms, len(decided), ids_share=ids_share)
        for due_ms, kind in records:
            at_ms, offset = now_ms + due_ms, len(decided)
            new = by_relay(at_ms, offset) if kind == "written" else schedule(at_ms, offset, KIND_IDS[kind])
            decided.append((new, admission.refusal(new) is not None))
        if then == "deliver":
            cursor = max(cursor, DueKey(now_ms, 0))
        kept = admission.kept(cursor)
        again = Admission(kept)
        for one, refused in decided:
            done = not refused and (one.due_ms, one.offset) <= cursor
            assert done or (again.refusal(one) is not None) == refused
        if then == "die":
            admission = again


def produce_from_the_future(world: World, ahead_ms: int) -> int:
    """A record whose producer's clock is ahead; its offset."""
    return world.source[0].append(world.now_ms + ahead_ms, b"k", b"v", [("deliver-after", b"1000")])


def test_a_timestamp_ahead_of_the_clock_does_not_pass_the_longest_delay() -> None:
    world = World()
    relay = start(world, MemoryBacklogStore())
    good, hostile = produce(world, 60_000), produce_from_the_future(world, 3_650 * DAY_MS)

    relay.run(70_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([good], [hostile])
    letter = next(record for _, record in world.delivered if record.topic == DEAD)
    said = parse_dead_letter(letter.headers)
    assert said is not None
    assert said.reason == "beyond-max-delay"


def test_a_record_that_was_refused_for_its_timestamp_is_not_delivered_when_all_is_read_again_later() -> None:
    # Given a refused record, good ones before and behind it, and a backlog that is wiped when the relay dies
    world, store = World(), MemoryBacklogStore()
    predecessor = start(world, store, "predecessor")
    first = produce(world, 60 * DAY_MS)
    hostile = produce_from_the_future(world, 130 * DAY_MS)
    second = produce(world, 61 * DAY_MS)
    predecessor.run(2_000)
    store.wipe()

    # When a successor reads all again at a time at which the record would be allowed
    world.now_ms += 59 * DAY_MS
    start(world, store, "successor").run(3 * DAY_MS, step_ms=600_000)
    world.now_ms += 100 * DAY_MS
    start(world, store, "another").run(10_000)

    assert (delivered_offsets(world), dead_offsets(world)) == ([first, second], [hostile])
