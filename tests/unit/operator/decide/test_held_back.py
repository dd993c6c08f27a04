from __future__ import annotations

from tests.support.operator.scenes import NOW_MS, document, seen

from delaytopic_api.documents import ConditionType
from delaytopic_operator.decide.held_back import held_back
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.conditions import TRUE, Condition
from delaytopic_operator.model.kafka_view import KafkaView
from delaytopic_operator.observe.observation import Observation, Topics
from delaytopic_process.open_transactions import LASTS_MS, OpenTransaction

LONG = OpenTransaction(100, NOW_MS - LASTS_MS - 1_000, held_back=40)
LONGER = OpenTransaction(200, NOW_MS - LASTS_MS - 2_000, held_back=3)
SHORT = OpenTransaction(300, NOW_MS - LASTS_MS + 1, held_back=9)


def with_transactions(found: dict[int, OpenTransaction]) -> Observation:
    view = KafkaView(missing=frozenset({"shop.a", "shop.b", "shop.a.dlq"}))
    return seen(document(deleted_ms=None), topics=Topics(view, open_transactions=found))


def test_the_one_that_is_open_for_longest_is_named_and_the_others_are_counted() -> None:
    found = with_transactions({0: SHORT, 2: LONG, 5: LONGER})

    message = f"2 source partitions (the first: 5) are read no further: {LONGER.describe()}"
    assert held_back(found) == [Condition(ConditionType.SOURCE_HELD_BACK, TRUE, "TransactionOpen", message)]


def test_transactions_that_end_in_time_are_nobodys_trouble() -> None:
    assert held_back(with_transactions({0: SHORT})) == []


def test_nothing_is_said_where_kafka_could_not_be_asked() -> None:
    assert held_back(seen(document(deleted_ms=None), topics=None)) == []


def test_the_plan_tells_of_it_beside_the_other_conditions() -> None:
    found = [each.reason for each in plan(with_transactions({2: LONG})).conditions]

    assert "TransactionOpen" in found
