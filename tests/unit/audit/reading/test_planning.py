"""Tests of which offsets a run reads, and why it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delaytopic_api import Percent
from delaytopic_api.relay import Ending
from delaytopic_api.values import Guarantee
from delaytopic_audit.errors import CannotJudge
from delaytopic_audit.model.manifest import FirstOffset, Plan, Range, Role, RulesFrom, State
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.reading.generations import Learned
from delaytopic_audit.reading.planning import Offsets, Request, TopicState, make_plan, shares
from delaytopic_relay.core.rules import READER

RULES = Rules(
    lateness_ms=1,
    grace_ms=1,
    objective=Percent("99%"),
    window_ms=1,
    guarantee=Guarantee.EXACTLY_ONCE,
    retention_ms=1,
)
REQUEST = Request("shop/orders", "a", "b", "a.dlq", RULES, now_ms=1_000)
RANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1_000), st.integers(0, 300_000)), max_size=8)


def state(topic: str, *partitions: tuple[int, int, int], topic_id: str = "id", **settings: str) -> TopicState:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return TopicState(topic, topic_id, {p: Offsets(*offsets) for p, offsets in enumerate(partitions)}, named)


def states(*partitions: tuple[int, int, int], **settings: str) -> dict[str, TopicState]:
    return {name: state(name, *partitions, **settings) for name in ("b", "a.dlq", "a")}


def committed(plan: Plan) -> State:
    return State(
        plan=plan,
        closed_minute=0,
        read=[],
        clocks=[],
        named=[],
        out_of_scope=0,
        beyond_retention=0,
        restated_minutes=0,
    )


def named(topic: str, state: State) -> State:
    """After records asked for this topic."""
    return state.model_copy(update={"named": [topic]})


def source_range(plan: Plan) -> list[Range]:
    return [piece for piece in plan.ranges if piece.role is Role.SOURCE]


def test_the_first_run_reads_all_that_is_there_up_to_the_last_stable_offset() -> None:
    plan = make_plan(REQUEST, states((2, 2, 9)), None)

    assert source_range(plan) == [Range(topic="a", role=Role.SOURCE, partition=0, start=2, end=9)]
    assert plan.scope == [FirstOffset(partition=0, offset=2)]
    assert (plan.sequence, plan.epoch, plan.planned_at_ms) == (1, 1, 1_000)


def test_the_next_run_goes_on_where_the_last_one_ended_and_reads_added_partitions_from_their_beginning() -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None))

    plan = make_plan(REQUEST, states((3, 3, 12), (0, 0, 4)), first)

    assert [(piece.partition, piece.start, piece.end) for piece in source_range(plan)] == [(0, 9, 12), (1, 0, 4)]
    assert plan.scope == [FirstOffset(partition=0, offset=2), FirstOffset(partition=1, offset=0)]
    assert (plan.sequence, plan.epoch) == (2, 1)


def test_a_restart_begins_a_new_epoch_with_what_is_there() -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None))

    plan = make_plan(replace(REQUEST, restarts=True), states((11, 11, 12)), first)

    assert source_range(plan) == [Range(topic="a", role=Role.SOURCE, partition=0, start=11, end=12)]
    assert (plan.sequence, plan.epoch) == (2, 2)


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (states((10, 10, 12)), "partition 0: the offsets 9 to 9 expired before the audit read them"),
        (states((2, 2, 8)), "partition 0 ends at offset 8, but was read up to 9 before: Kafka lost records of it"),
        (states((2, 2, 9), topic_id="other"), "was deleted and made anew since the last run"),
        (states(), "was deleted and made anew since the last run"),
    ],
)
def test_a_run_that_cannot_go_on_says_why_for_each_topic(now: dict[str, TopicState], reason: str) -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None))

    with pytest.raises(CannotJudge) as caught:
        make_plan(REQUEST, now, first)

    assert len(caught.value.reasons) == 3
    assert all(reason in each for each in caught.value.reasons)


def test_create_time_and_compaction_are_refused_but_for_the_clock_of_dead_letters() -> None:
    wrong = states((0, 0, 0), message_timestamp_type="CreateTime", cleanup_policy="compact,delete")

    with pytest.raises(CannotJudge) as caught:
        make_plan(REQUEST, wrong, None)

    assert [each.partition(" has ")[0].partition(" is ")[0] for each in caught.value.reasons] == [
        *("the source topic a", "the source topic a", "the target topic b", "the target topic b"),
        "the dead-letter topic a.dlq",
    ]


def test_reasons_say_what_to_do() -> None:
    with pytest.raises(CannotJudge) as clock:
        make_plan(REQUEST, {**states((0, 0, 0)), "a": state("a", (0, 0, 0), message_timestamp_type="CreateTime")}, None)
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None))
    with pytest.raises(CannotJudge) as expired:
        make_plan(REQUEST, {**states((2, 2, 9)), "a": state("a", (11, 11, 12))}, first)

    assert clock.value.reasons == (
        "the source topic a has message.timestamp.type=CreateTime: its times are whatever producers wrote, so nobody"
        " can say when a record arrived; set LogAppendTime, which holds for records from then on, or take those"
        " times as they are with --any-clock",
    )
    assert expired.value.reasons == (
        "a partition 0: the offsets 9 to 10 expired before the audit read them, so nobody can say what they held; run"
        " it more often than retention, and begin the audit anew with --restart",
    )


def test_topics_that_no_record_asked_for_are_planned_and_need_not_be_fit() -> None:
    others = {**states((0, 0, 1)), "c": state("c", (5, 5, 7), cleanup_policy="compact")}

    plan = make_plan(REQUEST, others, None)

    assert Range(topic="c", role=Role.TARGET, partition=0, start=5, end=7) in plan.ranges
    asked_for = named("c", committed(make_plan(REQUEST, states((0, 0, 1)), None)))
    with pytest.raises(CannotJudge, match="the target topic c is compacted"):
        make_plan(REQUEST, others, asked_for)
    assert make_plan(replace(REQUEST, restarts=True), others, asked_for).epoch == 2


def test_the_first_run_begins_where_it_is_told_to_and_added_partitions_with_their_first_record() -> None:
    plan = make_plan(REQUEST, states((2, 7, 9)), None)
    next_plan = make_plan(REQUEST, states((2, 8, 12), (1, 3, 4)), committed(plan))

    assert {(piece.start, piece.end) for piece in plan.ranges} == {(7, 9)}
    assert plan.scope == [FirstOffset(partition=0, offset=7)]
    assert [(piece.start, piece.end) for piece in source_range(next_plan)] == [(9, 12), (1, 4)]
    assert next_plan.scope == [FirstOffset(partition=0, offset=7), FirstOffset(partition=1, offset=1)]


def test_a_target_that_appears_after_its_schedules_is_read_from_its_first_record() -> None:
    first = named("c", committed(make_plan(REQUEST, states((0, 0, 1)), None)))

    plan = make_plan(REQUEST, {**states((0, 0, 1)), "c": state("c", (2, 5, 7))}, first)

    assert Range(topic="c", role=Role.TARGET, partition=0, start=2, end=7) in plan.ranges


def test_a_target_that_was_made_anew_before_any_record_asked_for_it_is_read_from_its_first_record() -> None:
    first = committed(make_plan(REQUEST, {**states((0, 0, 1)), "c": state("c", (0, 0, 100))}, None))

    plan = make_plan(REQUEST, {**states((0, 0, 1)), "c": state("c", (0, 0, 5), topic_id="other")}, first)

    assert Range(topic="c", role=Role.TARGET, partition=0, start=0, end=5) in plan.ranges


def test_a_target_that_records_ask_for_need_not_exist_unless_it_did_before() -> None:
    never = named("c", committed(make_plan(REQUEST, states((0, 0, 1)), None)))
    before = named("c", committed(make_plan(REQUEST, {**states((0, 0, 1)), "c": state("c", (0, 0, 1))}, None)))

    assert make_plan(REQUEST, states((0, 0, 1)), never).sequence == 2
    with pytest.raises(CannotJudge) as caught:
        make_plan(REQUEST, states((0, 0, 1)), before)

    assert caught.value.reasons == (
        "the target topic c was deleted since the last run: begin the audit anew with --restart",
    )
    assert make_plan(replace(REQUEST, restarts=True), states((0, 0, 1)), before).epoch == 2


TELLING = replace(REQUEST, outcomes="o", told=[Ending.CANCELLED])


def told(*partitions: tuple[int, int, int], **settings: str) -> dict[str, TopicState]:
    """The usual topics, and one of outcomes."""
    return {**states((0, 0, 1)), "o": state("o", *partitions, **settings)}


def outcome_ranges(plan: Plan) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for each in plan.ranges if each.role is Role.OUTCOMES]


def test_the_topic_of_outcomes_is_read_from_its_beginning_by_the_first_run_and_then_goes_on() -> None:
    first = make_plan(TELLING, told((2, 2, 9), message_timestamp_type="CreateTime"), None)

    second = make_plan(TELLING, told((2, 2, 12), (1, 1, 3)), committed(first))

    assert (first.outcomes, first.told, outcome_ranges(first)) == ("o", [Ending.CANCELLED], [(0, 2, 9)])
    assert outcome_ranges(second) == [(0, 9, 12), (1, 1, 3)]


def test_a_topic_of_outcomes_that_runs_before_did_not_read_is_read_from_now_on() -> None:
    first = committed(make_plan(REQUEST, states((0, 0, 1)), None))

    second = make_plan(TELLING, told((2, 2, 9)), first)

    assert outcome_ranges(second) == [(0, 9, 9)]


def test_a_topic_of_outcomes_that_does_not_exist_is_remarked_on_and_nothing_is_told() -> None:
    plan = make_plan(TELLING, states((0, 0, 1)), None)

    assert (plan.outcomes, plan.told) == (None, [])
    assert plan.remarks == ["The topic of outcomes o does not exist: what it has to tell is not judged."]


def test_a_compacted_topic_of_outcomes_is_refused() -> None:
    with pytest.raises(CannotJudge, match="the outcomes topic o is compacted"):
        make_plan(TELLING, told((0, 0, 1), cleanup_policy="compact"), None)


FORMER, LATTER = (RulesFrom(partition=0, offset=offset, rules=f"rules {offset}") for offset in (0, 5))
CONFIGURED = f"{READER}:Native:5:::ByHeader:x::"


def test_rules_that_relays_have_forgotten_since_the_last_run_are_still_known() -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None, Learned(CONFIGURED, {0: [FORMER]})))

    plan = make_plan(REQUEST, states((2, 2, 12), (0, 0, 4)), first, Learned(CONFIGURED, {0: [LATTER]}, ["why"]))

    assumed = RulesFrom(partition=1, offset=0, rules=CONFIGURED, assumed=True)
    assert plan.generations == [FORMER, LATTER, assumed]
    assert plan.remarks == ["why"]


def test_known_rules_survive_a_restart_and_not_the_topic() -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None, Learned(CONFIGURED, {0: [FORMER]})))
    restart, learned = replace(REQUEST, restarts=True), Learned(CONFIGURED, {0: [LATTER]})

    again = make_plan(restart, states((2, 2, 12)), first, learned)
    anew = make_plan(restart, states((0, 0, 12), topic_id="other"), first, learned)

    assert (again.generations, anew.generations) == ([FORMER, LATTER], [LATTER])


def test_what_was_read_by_other_rules_stays_in_doubt_until_it_is_forgotten_or_read_anew() -> None:
    first = committed(make_plan(REQUEST, states((2, 2, 9)), None, Learned(CONFIGURED, {0: [FORMER]})))
    learned = Learned(CONFIGURED, {0: [FORMER, LATTER]})

    second = committed(make_plan(REQUEST, states((2, 2, 12)), first, learned))
    third = make_plan(REQUEST, states((2, 2, 15)), second, learned)
    forgotten = second.model_copy(update={"forgotten": source_range(first.plan)})
    fourth = make_plan(REQUEST, states((2, 2, 15)), forgotten, learned)
    anew = make_plan(replace(REQUEST, restarts=True), states((2, 2, 15)), second, learned)

    assert [(each.start, each.end) for each in second.plan.doubtful] == [(5, 9)]
    assert third.doubtful == second.plan.doubtful
    assert (fourth.doubtful, anew.doubtful) == ([], [])


def test_offsets_of_unknown_rules_are_planned_as_not_judged_and_stay_so() -> None:
    first = make_plan(REQUEST, states((2, 2, 9)), None, Learned(CONFIGURED, {0: [LATTER]}))
    known = Learned(CONFIGURED, {0: [LATTER.model_copy(update={"rules": CONFIGURED})]})

    second = make_plan(REQUEST, states((2, 2, 12)), committed(first), known)

    assert [(each.start, each.end) for each in first.unjudged] == [(2, 9)]
    assert second.unjudged == first.unjudged


def test_a_plan_is_the_same_when_it_is_read_back() -> None:
    plan = make_plan(REQUEST, states((2, 2, 9)), None, Learned(CONFIGURED, {0: [LATTER]}, ["why"]))

    assert plan.unjudged
    assert plan.doubtful
    assert Plan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan


@given(RANGES, st.integers(1, 6))
def test_shares_cover_every_offset_once_and_no_task_reads_a_partition_twice(
    given_ranges: list[tuple[int, int, int]], tasks: int
) -> None:
    unique = {partition: (start, length) for partition, start, length in given_ranges}
    ranges = [
        Range(topic="a", role=Role.SOURCE, partition=partition, start=start, end=start + length)
        for partition, (start, length) in unique.items()
    ]

    loads = shares(ranges, tasks)

    pieces = sorted((r.partition, r.start, r.end) for load in loads for r in load)
    joined: dict[int, list[int]] = {}
    for partition, start, end in pieces:
        bounds = joined.setdefault(partition, [start, start])
        assert bounds[1] == start
        bounds[1] = end
    assert joined == {r.partition: [r.start, r.end] for r in ranges if r.end > r.start}
    assert all(len({r.partition for r in load}) == len(load) for load in loads)
