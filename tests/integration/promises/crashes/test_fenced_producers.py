"""P2 on a real broker: a producer that was fenced says so, whatever call it notices in."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.support.relay.route import Route

from delaytopic_relay.core.commands import Record
from delaytopic_relay.errors import Fenced
from delaytopic_relay.kafka import connection_settings
from delaytopic_relay.kafka.settings import Settings, producer_settings
from delaytopic_relay.kafka.target import KafkaTarget

pytestmark = pytest.mark.integration

RECORDS = 1_000


@pytest.fixture
def frozen(route: Route) -> Iterator[KafkaTarget]:
    """A producer whose successor came before it sent anything."""
    config = route.config()

    def settings(owner: str | None) -> Settings:
        return producer_settings(connection_settings(config.kafka), "tests", owner, 1 << 20)

    owner = f"owner-{uuid.uuid4().hex}"
    target = KafkaTarget(settings, route.source, owner)
    target.begin()
    target.fence(owner)
    yield target
    target.abort()
    target.close()


def send_and_settle(target: KafkaTarget, records: list[Record]) -> None:
    """Whichever of the two serves the client's callbacks notices first."""
    target.send(records)
    target.flush()


def test_p2_a_producer_that_is_fenced_while_its_records_are_on_the_way_says_so_and_another_takes_its_place(
    frozen: KafkaTarget, route: Route
) -> None:
    record = Record(route.target, b"value", b"key", [], 0)

    with pytest.raises(Fenced):
        send_and_settle(frozen, [record] * RECORDS)
    frozen.abort()
    frozen.replace()
    frozen.begin()
    frozen.send([record])

    assert frozen.flush() == []
