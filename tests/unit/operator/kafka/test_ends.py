"""Tests that the offsets of many topics are asked for together, and that no topic waits for another's brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from random import Random
from threading import Thread

import pytest
from tests.support.operator.kafka_help import wait_for
from tests.support.operator.topic_scenes import facts

from delaytopic_operator.errors import KafkaUnavailable
from delaytopic_operator.kafka.ends import FEWEST_ALONG, NEAR, UNASKED_S, EndsTogether, SourceEnds
from delaytopic_operator.model.kafka_view import PartitionOffsets, TopicFacts

POLL_S = 15.0
KEPT_S = POLL_S / 3
SOON_S = POLL_S - 1.0
"""A second before all that were asked for at second 0 are looked at again."""


@dataclass
class Brokers:
    """Answers for each topic that is not silent; keeps the names that each question was about."""

    now_s: float = 1_000.0
    silent: set[str] = field(default_factory=set)
    leaderless: set[str] = field(default_factory=set)
    asked: list[list[str]] = field(default_factory=list)

    def read(self, topics: Iterable[TopicFacts]) -> Mapping[str, SourceEnds]:
        """Answer one question."""
        ordered = list(topics)
        self.asked.append(sorted(topic.name for topic in ordered))
        if self.silent & {topic.name for topic in ordered}:
            raise KafkaUnavailable("no answer in time")
        return {topic.name: self.ends(topic) for topic in ordered}

    def ends(self, topic: TopicFacts) -> SourceEnds:
        """Return the ends as of now; without a leader the first partition is left out."""
        numbers = range(topic.name in self.leaderless, topic.partitions)
        there = {number: PartitionOffsets(0, 7) for number in numbers}
        return SourceEnds(there, dict.fromkeys(there, 7), int(self.now_s * 1_000))


def asked(together: EndsTogether, brokers: Brokers, *names: str, at_s: float) -> list[list[str]]:
    """Ask for topics, one after the other; return what the questions were about."""
    brokers.now_s = at_s
    brokers.asked.clear()
    for name in names:
        together.of(facts(name), lambda: brokers.now_s)
    return list(brokers.asked)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def together(brokers: Brokers) -> EndsTogether:
    """The ends of `a`, `b` and `c`, which were all asked for at second 0."""
    ends = EndsTogether(brokers.read, POLL_S)
    asked(ends, brokers, "a", "b", "c", at_s=0.0)
    return ends


def test_looks_that_come_late_read_those_along_that_were_asked_for_longest_ago(brokers: Brokers) -> None:
    names = [f"t{number:02}" for number in range(2 * FEWEST_ALONG)]
    late = EndsTogether(brokers.read, POLL_S)
    for at_s, name in enumerate(names):
        asked(late, brokers, name, at_s=float(at_s))

    questions = asked(late, brokers, names[-1], at_s=len(names) + 4 * POLL_S)

    assert questions == [[*names[:FEWEST_ALONG], names[-1]]]


def test_looks_that_come_late_read_twice_as_many_along_as_came_lately(brokers: Brokers) -> None:
    names = [f"t{number:03}" for number in range(10 * FEWEST_ALONG)]
    late = EndsTogether(brokers.read, POLL_S)
    asked(late, brokers, *names, at_s=0.0)
    asked(late, brokers, *names[: 2 * FEWEST_ALONG], at_s=4 * POLL_S)

    [question] = asked(late, brokers, names[-1], at_s=4 * POLL_S + 1.0)

    assert len(question) == 1 + 2 * (2 * FEWEST_ALONG + 1)


def test_topics_whose_next_look_is_near_are_read_along_with_the_first(together: EndsTogether, brokers: Brokers) -> None:
    questions = asked(together, brokers, "a", "b", "c", at_s=SOON_S)

    assert questions == [["a", "b", "c"]]


def test_topics_whose_next_look_is_not_near_are_not_read_along(together: EndsTogether, brokers: Brokers) -> None:
    questions = asked(together, brokers, "d", at_s=POLL_S - KEPT_S)

    assert questions == [["d"]]


def test_topics_whose_next_look_finds_an_answer_are_not_read_along(together: EndsTogether, brokers: Brokers) -> None:
    asked(together, brokers, "b", at_s=SOON_S)
    questions = asked(together, brokers, "d", at_s=POLL_S)

    assert questions == [["d"]]


def test_looks_that_spread_and_come_late_share_their_questions(brokers: Brokers) -> None:
    ends, times = EndsTogether(brokers.read, POLL_S), Random(7)
    looks = [(POLL_S * times.random(), f"topic-{number}") for number in range(300)]
    heapify(looks)
    questions: list[list[str]] = []
    while looks[0][0] < 10 * POLL_S:
        at_s, name = heappop(looks)
        found = asked(ends, brokers, name, at_s=at_s)
        questions += found if at_s > 2 * POLL_S else []
        heappush(looks, (at_s + POLL_S + 0.5 * times.random(), name))

    assert len(questions) <= 8 * POLL_S / (NEAR * KEPT_S) + 1
    assert sum(map(len, questions)) < 1.5 * 8 * 300


def test_an_answer_counts_for_a_third_of_the_time_between_two_looks(together: EndsTogether, brokers: Brokers) -> None:
    questions = [asked(together, brokers, "a", at_s=at_s) for at_s in (KEPT_S - 0.1, KEPT_S)]

    assert questions == [[], [["a"]]]


def test_an_answer_says_when_it_was_read(together: EndsTogether, brokers: Brokers) -> None:
    first = together.of(facts("a"), lambda: KEPT_S / 2)
    second = together.of(facts("a"), lambda: KEPT_S - 0.1)

    assert first is second
    assert first is not None
    assert first.as_of_ms == 0


def test_a_topic_without_a_leader_is_read_alone_until_it_has_one(together: EndsTogether, brokers: Brokers) -> None:
    brokers.leaderless.add("b")
    asked(together, brokers, "a", at_s=SOON_S)
    without = asked(together, brokers, "a", "b", at_s=SOON_S + POLL_S)
    brokers.leaderless.clear()
    asked(together, brokers, "b", at_s=SOON_S + 2 * POLL_S)
    back = asked(together, brokers, "a", "b", at_s=SOON_S + 3 * POLL_S)

    assert without == [["a", "c"], ["b"]]
    assert back == [["a", "b", "c"]]


def test_a_question_that_fails_is_asked_topic_by_topic_so_that_one_alone_fails(
    together: EndsTogether, brokers: Brokers
) -> None:
    brokers.silent.add("b")
    with pytest.raises(KafkaUnavailable):
        asked(together, brokers, "a", at_s=SOON_S)

    alone = asked(together, brokers, "a", "c", at_s=POLL_S)
    with pytest.raises(KafkaUnavailable):
        asked(together, brokers, "b", at_s=POLL_S)
    later = asked(together, brokers, "a", "c", at_s=2 * POLL_S)

    assert alone == [["a"], ["c"]]
    assert later == [["a", "c"]]


def test_a_topic_that_nobody_asks_for_any_more_is_not_read_along(together: EndsTogether, brokers: Brokers) -> None:
    asked(together, brokers, "a", at_s=UNASKED_S / 2)
    questions = asked(together, brokers, "a", at_s=UNASKED_S + 1)

    assert questions == [["a"]]


def test_topics_of_those_who_wait_are_read_by_the_next_question(brokers: Brokers) -> None:
    together: EndsTogether
    names = ["b", "c", "d"]

    def read(topics: Iterable[TopicFacts]) -> Mapping[str, SourceEnds]:
        if not brokers.asked:
            others.extend(Thread(target=together.of, args=(facts(name), lambda: brokers.now_s)) for name in names)
            for each in others:
                each.start()
            wait_for(lambda: together.in_line.keys() == set(names))
        return brokers.read(topics)

    others: list[Thread] = []
    together = EndsTogether(read, POLL_S)

    together.of(facts("a"), lambda: brokers.now_s)
    for each in others:
        each.join()

    assert brokers.asked == [["a"], names]
