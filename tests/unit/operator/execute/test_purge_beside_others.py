"""A backlog is removed only where no relays of another Kubernetes cluster are in the group, asked right before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import document, record, seen

from delaytopic_operator.errors import OtherOwner
from delaytopic_operator.execute.topics import TopicsExecutor
from delaytopic_operator.observe.observation import Observation


class Kafka:
    """A Kafka whose group has relays of another cluster."""

    def cluster(self, *_: object) -> Kafka:
        return self

    def member_names(self, group_id: str, *, fresh: bool = False) -> list[str]:
        assert (group_id, fresh) == ("delaytopic.shop.reminders", True)  # nothing is removed on the word of before
        return ["relay-1.k-0a1b2c3d", "relay-2.k-99999999"]

    def strimzi(self, *_: object) -> None:
        raise AssertionError("something is removed")


def test_nothing_is_removed_that_relays_of_another_cluster_use() -> None:
    kafka: Any = Kafka()
    found: Observation = seen(document(), kube_cluster="0a1b2c3d")

    with pytest.raises(OtherOwner, match=r"in the group delaytopic\.shop\.reminders"):
        TopicsExecutor(kafka, kafka).purge(found, record(), topics=True, guard=lambda: None)
