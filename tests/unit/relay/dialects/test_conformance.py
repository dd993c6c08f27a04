"""Conformance of records as other services' clients produce them: a whole relay, on a Kafka in memory.

`tests/integration/promises/records/test_dialects.py` runs the same tables on a real one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.paths import ROOT
from tests.support.relay import in_world
from tests.support.relay.backlog.memory_store import MemoryBacklogStore
from tests.support.relay.dialects.table import Beside, Origin, Seen, Stage, beside_of, seen
from tests.support.relay.dialects.tables import IN_MEMORY, TABLES
from tests.support.relay.world import World

from delaytopic_api.relay import RelayConfig
from delaytopic_api.values import Dialect
from delaytopic_relay.dialects import dialect_for, forms_for

NOW_MS = 1_795_269_600_000
OTHER, HISTORY = "other", "history"
REFERENCE = sorted((ROOT / "docs" / "reference").glob("dialects*.md"))


def config_of(schedule: Mapping[str, Any]) -> RelayConfig:
    """A relay's configuration with this schedule, whose copies have a history topic."""
    with_history = (
        {"scheduler": {"history": {"topic": HISTORY}, **schedule["scheduler"]}} if "scheduler" in schedule else {}
    )
    return RelayConfig.model_validate(
        {
            "name": "reminders",
            "namespace": "shop",
            "groupId": "delaytopic.shop.reminders",
            "source": {"topic": in_world.SOURCE},
            "target": {"topic": in_world.TARGET, "allowedTopics": [OTHER]},
            "deadLetter": {"topic": in_world.DEAD},
            "schedule": {**schedule, **(with_history if "scheduler" in schedule else {})},
            "precision": "50ms",
            "guarantee": "ExactlyOnce",
            "backend": {"type": "KafkaBuckets", "id": "delaytopic.team.shop"},
            "kafka": {"bootstrapServers": "kafka:9092"},
        }
    )


def test_every_dialect_but_the_native_one_has_a_table_and_a_section_of_the_reference() -> None:
    tabled = {config_of(table.schedule).schedule.dialect for table in TABLES.values()}
    text = "\n".join(page.read_text(encoding="utf-8") for page in REFERENCE)
    sections = re.findall(r"^## (\w+)$", text, re.MULTILINE)

    expected = {*Dialect} - {Dialect.NATIVE}
    assert (tabled, expected - {*sections}) == (expected, set())


@pytest.mark.parametrize("dialect", IN_MEMORY)
def test_each_record_becomes_what_its_service_makes_of_it(dialect: str) -> None:
    table, world, config = IN_MEMORY[dialect], World(NOW_MS), config_of(IN_MEMORY[dialect].schedule)
    setup = in_world.Setup(dialect=dialect_for(config), forms=forms_for(config), partition_count=lambda topic: 4)
    relay = in_world.start(world, MemoryBacklogStore(), setup=setup)
    cases = table.cases(Stage(NOW_MS, in_world.TARGET, OTHER, in_world.SOURCE, HISTORY))
    offsets = {
        what: world.produce(0, case.produced.key, case.produced.value, [*case.produced.headers])
        for what, case in cases.items()
    }
    relay.run(for_ms=6_000)

    written = [*(record for _, record in world.delivered), *world.stones]
    main = [record for record in written if record.topic not in (in_world.SOURCE, HISTORY)]
    found = [seen(record.topic, record.key, record.value, record.headers) for record in main]
    beside = [
        beside_of(record.topic, record.partition, record.key, record.value, record.headers)
        for record in written
        if record.topic in (in_world.SOURCE, HISTORY)
    ]

    at = {one.offset: one for one in found}
    expected, expected_beside = {}, list[Beside]()
    for what, case in cases.items():
        one = at.get(offsets[what], Seen(0, 0, 0, None))
        origin = Origin(in_world.SOURCE, 0, offsets[what], NOW_MS, one.sent_ms)
        expected[what] = case.outcome(origin)
        expected_beside += case.beside(origin)
    assert {what: at[offset].outcome if offset in at else None for what, offset in offsets.items()} == expected
    assert sorted(beside, key=str) == sorted(expected_beside, key=str)
    assert len(at) == len(found)
    assert [one for one in found if one.outcome is not None and one.sent_ms < getattr(one.outcome, "due_ms", 0)] == []


def test_a_tombstone_that_the_relay_has_written_withdraws_nothing_that_came_meanwhile() -> None:
    # Given a schedule whose name gets another one while it is delivered: in front of its tombstone
    world, config = World(NOW_MS), config_of({"schedulerJson": {}, "maxDelay": "1h"})
    setup = in_world.Setup(dialect=dialect_for(config), forms=forms_for(config))
    relay = in_world.start(world, MemoryBacklogStore(), setup=setup)
    first, second = (
        b'{"time": %d, "topic": "target", "key": "YQ=="}' % (NOW_MS + after_ms) for after_ms in (1_000, 3_000)
    )
    world.produce(0, b"name", first)

    def meanwhile(effect: str) -> None:
        if effect == "before produce" and len(world.source[0].entries) == 1:
            world.produce(0, b"name", second)

    world.crash = meanwhile
    relay.run(for_ms=5_000)

    assert [(record.topic, record.value) for _, record in world.delivered] == [(in_world.TARGET, None)] * 2
    assert [(stone.key, stone.value) for stone in world.stones] == [(b"name", None)] * 2
