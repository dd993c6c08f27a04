"""Tests that thousands of groups are asked for in few questions, and none is believed for long."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from delaytopic_operator.errors import KafkaNotAuthorized, KafkaUnavailable, OperatorError
from delaytopic_operator.kafka.cache import MEMBERS_KEPT_S, MEMBERS_SOON_S, MOST_GROUPS, UNASKED_S, GroupMembers


@dataclass
class Brokers:
    """Groups with their members, and the questions about them."""

    groups: dict[str, Sequence[str] | OperatorError]
    questions: list[list[str]] = field(default_factory=list)
    is_away: bool = False

    def read(self, groups: Collection[str]) -> Mapping[str, Sequence[str] | OperatorError]:
        """Answer a question."""
        self.questions.append([*groups])
        if self.is_away:
            raise KafkaUnavailable("no answer")
        return {name: self.groups[name] for name in groups}


def test_an_answer_counts_for_some_seconds() -> None:
    brokers = Brokers({"a": ["relay-0"]})
    members = GroupMembers(brokers.read)

    found = [members.of("a", 100.0 + later_s) for later_s in (0.0, MEMBERS_KEPT_S - 1, MEMBERS_KEPT_S)]

    assert (found, brokers.questions) == ([["relay-0"]] * 3, [["a"], ["a"]])


def test_an_answer_of_now_is_asked_for_whatever_is_known() -> None:
    brokers = Brokers({"a": ["relay-0"]})
    members = GroupMembers(brokers.read)
    members.of("a", 100.0)
    brokers.groups["a"] = ["relay-1"]

    assert [members.of("a", 101.0, fresh=True), members.of("a", 102.0)] == [["relay-1"]] * 2


def test_groups_whose_answers_grow_old_are_asked_for_along_with_another_the_oldest_first() -> None:
    brokers = Brokers({name: [name] for name in "abcd"})
    members = GroupMembers(brokers.read)
    for at_s, name in enumerate("badc"):
        members.of(name, 100.0 + at_s)
    brokers.questions.clear()

    members.of("c", 102.0 + MEMBERS_SOON_S)
    members.of("a", 102.0 + MEMBERS_SOON_S + 1)

    assert brokers.questions == [["c", "b", "a", "d"]]


def test_no_question_is_about_more_groups_than_some_hundred() -> None:
    many = [f"g{number:03}" for number in range(MOST_GROUPS + 7)]
    brokers = Brokers({name: [] for name in many})
    members = GroupMembers(brokers.read)
    for name in many:
        members.of(name, 100.0)

    members.of(many[0], 100.0 + MEMBERS_SOON_S)

    assert [len(groups) for groups in brokers.questions[-1:]] == [MOST_GROUPS]


def test_a_group_that_may_not_be_described_hides_no_other_and_is_asked_for_again() -> None:
    refused = KafkaNotAuthorized("describe the consumer group b")
    brokers = Brokers({"a": ["relay-0"], "b": []})
    members = GroupMembers(brokers.read)
    members.of("b", 100.0)
    brokers.groups["b"] = refused

    found = members.of("a", 100.0 + MEMBERS_SOON_S)
    with pytest.raises(KafkaNotAuthorized, match="group b"):
        members.of("b", 100.0 + MEMBERS_SOON_S)

    assert (found, brokers.questions) == (["relay-0"], [["b"], ["a", "b"], ["b"]])


def test_groups_are_asked_for_along_again_after_a_question_that_nobody_answered() -> None:
    brokers = Brokers({"a": [], "b": []})
    members = GroupMembers(brokers.read)
    members.of("b", 100.0)

    for is_away in (True, False):
        brokers.is_away = is_away
        try:
            members.of("a", 100.0 + MEMBERS_SOON_S)
        except KafkaUnavailable:
            assert is_away

    assert brokers.questions == [["b"], ["a", "b"], ["a", "b"]]


def test_a_group_that_nobody_asks_for_is_forgotten() -> None:
    brokers = Brokers({"a": [], "b": []})
    members = GroupMembers(brokers.read)
    members.of("a", 100.0)
    members.of("b", 100.0 + UNASKED_S)

    members.of("b", 100.0 + UNASKED_S + MEMBERS_KEPT_S)

    assert brokers.questions == [["a"], ["b", "a"], ["b"]]
