from __future__ import annotations

from delaytopic_operator.model.kafka_view import PartitionOffsets, hold_nothing

EMPTY = {0: PartitionOffsets(7, 7), 1: PartitionOffsets(0, 0)}
FILLED = {0: PartitionOffsets(7, 7), 1: PartitionOffsets(0, 1)}


def test_a_topic_holds_nothing_if_none_of_its_partitions_does() -> None:
    assert hold_nothing({"empty": EMPTY, "filled": FILLED, "unknown": {}}) == {"empty"}


def test_what_is_known_of_ids_is_of_no_use_once_nothing_waits_in_any_bucket() -> None:
    assert hold_nothing({"bucket": FILLED, "ids": FILLED}, "ids") == frozenset()
    assert hold_nothing({"bucket": EMPTY, "ids": FILLED}, "ids") == {"bucket", "ids"}
    assert hold_nothing({"ids": FILLED}, "ids") == {"ids"}
    assert hold_nothing({"bucket": EMPTY}, "ids") == {"bucket"}
