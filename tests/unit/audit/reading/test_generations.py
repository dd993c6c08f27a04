"""The rules by which relays read the source, as an audit learns them and keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.audit.messages import config_for, reading

from delaytopic_audit.model.manifest import Range, Remarked, Role, RulesFrom
from delaytopic_audit.reading.generations import (
    CommittedOffset,
    Learned,
    doubtful,
    in_force,
    learned_from,
    merged,
    nothing_learned,
    pieces,
    unjudged,
)
from delaytopic_relay.core import encode_rules
from delaytopic_relay.dialects import rules_of

CONFIGURED = rules_of(config_for("a", "b", "a.dlq", ["c"]))
FIRST, SECOND, THIRD = (reading(0, 10 * number, max_delay_ms=number) for number in (1, 2, 3))
ASSUMED = RulesFrom(partition=0, offset=0, rules="x", assumed=True)
UNKNOWN = reading(0, 20, reader=9)
OFFSETS = st.integers(0, 60)


def of_source(start: int, end: int, partition: int = 0) -> Range:
    return Range(topic="a", role=Role.SOURCE, partition=partition, start=start, end=end)


def remarked(start: int, end: int, reason: str = "why") -> Remarked:
    return Remarked(**dict(of_source(start, end)), reason=reason)


def committed(*generations: RulesFrom) -> CommittedOffset:
    texts = [f"{each.offset}:0:-1:-1:{each.rules}" for each in generations]
    return CommittedOffset(7, f"5;9;-1;-1;0;;;{' '.join(texts)};;;owner")


def test_rules_are_learned_from_what_a_group_has_committed() -> None:
    # Partition 1 has an offset that somebody has set by hand.
    learned = learned_from(CONFIGURED, {0: committed(FIRST, SECOND), 1: CommittedOffset(5, "")})

    assert learned == Learned(encode_rules(CONFIGURED), {0: [FIRST, SECOND]}, [])


def test_what_relays_of_another_version_have_committed_is_remarked_on_and_the_rest_learned() -> None:
    learned = learned_from(
        CONFIGURED, {0: committed(FIRST), 1: CommittedOffset(5, "9;x"), 2: CommittedOffset(5, "9;x")}
    )

    assert learned.found == {0: [FIRST]}
    assert learned.remarks == [
        "The rules by which relays read source records of partitions 1, 2 could not be learned: the metadata '9;x' of"
        " committed offset 5 is not of this version of the relay; run the version that wrote it, or reset the group's"
        " offset to start from there without it. Records were judged by the rules that are known, or by the DelayTopic"
        " as it is: verdicts on those from before an edit may be wrong."
    ]


def test_a_group_that_cannot_be_read_is_remarked_on_with_the_right_that_is_needed() -> None:
    learned = nothing_learned(CONFIGURED, "delaytopic.shop.orders", "Broker: Group authorization failed")

    assert learned.found == {}
    assert learned.remarks == [
        "The rules by which relays read source records could not be learned: the group delaytopic.shop.orders cannot be"
        " read (Broker: Group authorization failed), for which the audit's Kafka user needs Describe on it. Records"
        " were judged by the rules that are known, or by the DelayTopic as it is: verdicts on those from before an edit"
        " may be wrong."
    ]


@pytest.mark.parametrize(
    ("known", "found", "low", "expected"),
    [
        ([], [FIRST, SECOND], 0, [FIRST, SECOND]),
        ([FIRST], [SECOND], 0, [FIRST, SECOND]),
        ([FIRST, SECOND], [SECOND, THIRD], 0, [FIRST, SECOND, THIRD]),
        ([FIRST, SECOND], [], 0, [FIRST, SECOND]),
        ([FIRST, SECOND], [reading(0, 20, max_delay_ms=5)], 0, [FIRST, reading(0, 20, max_delay_ms=5)]),
        ([FIRST, THIRD], [SECOND], 0, [FIRST, SECOND]),
        ([ASSUMED], [SECOND], 0, [SECOND]),
        ([ASSUMED], [], 0, []),
        ([FIRST, SECOND], [SECOND, THIRD], 19, [FIRST, SECOND, THIRD]),
        ([FIRST, SECOND], [SECOND, THIRD], 20, [SECOND, THIRD]),
        ([FIRST], [], 99, [FIRST]),
    ],
    ids=[
        *(
            "nothing was known",
            "the oldest was forgotten",
            "one was added",
            "nothing was found",
            "later knowledge wins",
        ),
        *("never in force", "assumed", "assumed again", "of records that are there", "of records that are gone"),
        "in force",
    ],
)
def test_known_rules_stay_known_and_later_knowledge_wins(
    known: list[RulesFrom], found: list[RulesFrom], low: int, expected: list[RulesFrom]
) -> None:
    assert merged(known, found, low) == expected


@given(st.lists(OFFSETS, unique=True, min_size=1).map(sorted), OFFSETS, OFFSETS)
def test_each_offset_is_read_by_the_last_rules_that_begin_before_it_or_by_the_oldest(
    offsets: list[int], start: int, end: int
) -> None:
    generations = [reading(0, offset) for offset in offsets]

    found = {each: piece for first, last, piece in pieces(generations, start, end) for each in range(first, last)}

    assert found == {
        each: next((piece for piece in reversed(generations) if piece.offset <= each), generations[0])
        for each in range(start, end)
    }


def test_a_job_gets_the_rules_of_its_ranges_alone() -> None:
    other = reading(1, 0)
    target = Range(topic="b", role=Role.TARGET, partition=1, start=0, end=9)

    assert in_force([FIRST, SECOND, THIRD, other], [of_source(5, 25), target]) == [FIRST, SECOND]


def test_offsets_of_unknown_rules_are_not_judged_in_later_runs_either() -> None:
    generations = [FIRST, UNKNOWN, RulesFrom(partition=0, offset=30, rules="nonsense")]

    first = unjudged(generations, [of_source(0, 25)], "b", [])
    second = unjudged(generations, [of_source(25, 35)], "b", first)

    [reason] = [each.reason for each in first]
    assert reason.startswith("relays read them by rules that this version of the audit does not know (9:Native:")
    assert first == [remarked(20, 25, reason)]
    assert second == [
        remarked(20, 30, reason),
        remarked(30, 35, "relays read them by rules that this version of the audit does not know (nonsense)"),
    ]


def test_offsets_from_before_the_oldest_rules_that_are_known_are_in_doubt() -> None:
    [found] = doubtful([FIRST, SECOND], [of_source(5, 25)], [], [], [])

    assert found == remarked(5, 10, found.reason)
    assert found.reason.startswith("relays have forgotten the rules")


def test_offsets_that_were_read_by_other_rules_than_are_known_by_now_are_in_doubt() -> None:
    earlier = SECOND.model_copy(update={"offset": 15})

    [before, found] = doubtful([FIRST, earlier], [], [FIRST, SECOND], [of_source(12, 18)], [remarked(0, 3, "a")])

    assert before == remarked(0, 3, "a")
    assert found == remarked(15, 18, found.reason)
    assert found.reason.startswith("relays read them by other rules than the audit did")


def test_what_is_only_assumed_puts_nothing_in_doubt() -> None:
    again = ASSUMED.model_copy(update={"rules": "y"})

    assert doubtful([again], [of_source(5, 25)], [ASSUMED], [of_source(0, 5)], []) == []
