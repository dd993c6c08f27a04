"""Tests that what was read of topics not long ago is not read again, and what was changed is."""

from __future__ import annotations

from dataclasses import replace

from tests.support.operator.topic_scenes import facts

from delaytopic_operator.kafka.cache import KEPT_S, MOST_TOGETHER, SOON_S, UNASKED_S, TopicMemory
from delaytopic_operator.model.kafka_view import KafkaView

A, B = facts("a"), facts("b")
SETTINGS_KEPT_S = 300.0


def reading(memory: TopicMemory, names: list[str], now_s: float) -> list[str]:
    """Ask, and read what has to be read."""
    known, to_read = memory.recall(names, now_s)
    there = {name: facts(name) for name in to_read}
    memory.remember(KafkaView(there), now_s)
    assert {*known, *to_read} >= {*names}
    return to_read


def test_an_answer_counts_for_a_minute() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)

    read = [reading(memory, ["a"], now_s) for now_s in (100.0, 100.0 + KEPT_S - 1, 100.0 + KEPT_S)]

    assert read == [["a"], [], ["a"]]


def test_what_others_wait_for_and_what_grows_old_is_read_along() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    reading(memory, ["a"], 100.0)
    reading(memory, ["b"], 100.0 + SOON_S - 1)
    waits = memory.known(["b", "c"], 100.0 + KEPT_S)

    together = reading(memory, ["a"], 100.0 + KEPT_S)

    assert (waits, set(together)) == (None, {"a", "b", "c"})
    assert memory.known(["b", "c"], 100.0 + KEPT_S) == {"b": facts("b"), "c": facts("c")}
    assert reading(memory, ["a", "b", "c"], 100.0 + KEPT_S) == []


def test_no_question_is_about_more_than_a_batch_unless_it_was_asked_so() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    many = [f"t{number}" for number in range(2 * MOST_TOGETHER)]
    memory.known(many, 100.0)

    assert len(reading(memory, ["a"], 100.0)) == MOST_TOGETHER
    assert reading(memory, ["b"], 100.0) == ["b", *many[MOST_TOGETHER - 1 : -2]]
    assert len(reading(memory, many, 100.0 + KEPT_S)) == len(many)


def test_a_topic_that_is_missing_is_asked_for_each_time() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)

    memory.recall(["a"], 100.0)
    memory.remember(KafkaView({}, frozenset({"a"})), 100.0)

    assert memory.recall(["a"], 100.0).to_read == ["a"]


def test_what_was_read_before_a_change_does_not_count_after_it() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)

    memory.recall(["a"], 100.0)
    memory.forget("a", 101.0)
    memory.remember(KafkaView({"a": A}), 100.0)

    assert memory.recall(["a"], 102.0).to_read == ["a"]


def test_a_topic_that_nobody_asks_for_is_forgotten() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    reading(memory, ["a"], 100.0)

    later_s = 100.0 + UNASKED_S
    reading(memory, ["b"], later_s)

    assert reading(memory, ["b"], later_s + KEPT_S) == ["b"]


def test_settings_count_for_longer_than_what_else_is_known_of_a_topic_and_only_of_that_very_topic() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    memory.remember(KafkaView({"a": A}), 100.0)
    for later_s in (1.0, SETTINGS_KEPT_S - 1.0):
        memory.remember(KafkaView({"a": A}), 100.0 + later_s, not_read={"a"})
    made_anew = replace(A, topic_id="another")

    assert memory.settings_of([A, B], 100.0 + SETTINGS_KEPT_S - 1.0) == {"a": A}
    assert memory.settings_of([A], 100.0 + SETTINGS_KEPT_S) == {}
    assert memory.settings_of([made_anew], 101.0) == {}


def test_settings_that_the_operator_changes_are_read_again() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    memory.remember(KafkaView({"a": A}), 100.0)

    memory.forget("a", 101.0)

    assert memory.settings_of([A], 102.0) == {}


def test_equal_settings_are_held_once() -> None:
    memory = TopicMemory(SETTINGS_KEPT_S)
    memory.recall(["a", "b"], 100.0)
    memory.remember(KafkaView({"a": A, "b": B}), 100.0)

    known = memory.recall(["a", "b"], 101.0).known

    assert known == {"a": A, "b": B}
    assert known["a"].config is known["b"].config
