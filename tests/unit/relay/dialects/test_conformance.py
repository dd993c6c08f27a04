"""What comes of records as other services' clients produce them: a whole relay, on a Kafka in memory.

`tests/integration/promises/test_dialects.py` runs the same tables on a real one.
"""

from __future__ import annotations

import pytest
from tests.support.relay import in_world
from tests.support.relay.dialects.table import Origin, Seen, Stage, seen
from tests.support.relay.dialects.tables import TABLES
from tests.support.relay.memory_store import MemoryBacklogStore
from tests.support.relay.world import World

from delaytopic_api.relay import RelayConfig
from delaytopic_relay.dialects import dialect_for, forms_for

NOW_MS = 1_795_269_600_000
OTHER = "other"


def config_of(schedule: object) -> RelayConfig:
    """A relay's configuration with this schedule."""
    return RelayConfig.model_validate(
        {
            "name": "reminders",
            "namespace": "shop",
            "groupId": "delaytopic.shop.reminders",
            "source": {"topic": in_world.SOURCE},
            "target": {"topic": in_world.TARGET, "allowed": [OTHER]},
            "deadLetter": {"topic": in_world.DEAD},
            "schedule": schedule,
            "precision": "50ms",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "delaytopic.team.shop"},
            "kafka": {"bootstrapServers": "kafka:9092"},
        }
    )


@pytest.mark.parametrize("dialect", TABLES)
def test_each_record_becomes_what_its_service_makes_of_it(dialect: str) -> None:
    table, world, config = TABLES[dialect], World(NOW_MS), config_of(TABLES[dialect].schedule)
    setup = in_world.Setup(dialect=dialect_for(config), forms=forms_for(config))
    relay = in_world.start(world, MemoryBacklogStore(), setup=setup)
    cases = table.cases(Stage(NOW_MS, in_world.TARGET, OTHER))
    offsets = {
        what: world.produce(0, case.produced.key, case.produced.value, [*case.produced.headers])
        for what, case in cases.items()
    }
    relay.run(for_ms=6_000)

    found = [seen(record.topic, record.key, record.value, record.headers) for _, record in world.delivered]

    at = {one.offset: one for one in found}
    expected = {}
    for what, case in cases.items():
        one = at.get(offsets[what], Seen(0, 0, 0, None))
        expected[what] = case.outcome(Origin(in_world.SOURCE, 0, offsets[what], NOW_MS, one.sent_ms))
    assert {what: at[offset].outcome if offset in at else None for what, offset in offsets.items()} == expected
    assert len(at) == len(found)
    assert [one for one in found if one.outcome is not None and one.sent_ms < getattr(one.outcome, "due_ms", 0)] == []
