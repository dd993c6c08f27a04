"""Offsets that are committed again: told with their age, and never called restored when relays had delivered more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.operator.scenes import CONFIG, NOW_MS
from tests.unit.operator.decide.test_planner import id_of, look, owned

from delaytopic_operator.decide.plan import Plan, RestoreOffsets, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.execute.executor import Executor, Outcome
from delaytopic_operator.execute.topics import Restored
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.model.offsets_backup import OffsetsBackup, OutdatedOffsets
from delaytopic_operator.model.record import RouteRecord, parse_record
from delaytopic_operator.observe.observation import Observation

KEPT_MS = NOW_MS - 9 * 24 * 3_600_000
BACKUP = OffsetsBackup("shop.a", id_of("shop.a"), {0: Committed(7, "1;9;5;3;")}, {0: KEPT_MS})
DAY_MS = 24 * 3_600_000


class Cluster:
    """An API server that remembers records, and a Kafka that had forgotten something."""

    def __init__(self, restored: Restored | None) -> None:
        self.restored = restored
        self.records: list[RouteRecord] = []

    def apply(self, document: dict[str, Any], manager: str) -> None:
        self.records.append(parse_record(document))

    def restore(self, seen: Observation, group_id: str, kept: OffsetsBackup) -> Restored | None:
        return self.restored

    def execute(self, *actions: RestoreOffsets | WriteRecord) -> Outcome:
        made: Any = self
        executor = Executor(made, lambda *_: None, made, CONFIG, lambda: None, lambda _: None)
        return executor.execute(look(), Plan(actions=actions))


RESTORE = RestoreOffsets("delaytopic.shop.reminders", BACKUP)


def test_what_nobody_had_gone_beyond_is_restored_and_its_age_is_told() -> None:
    cluster = Cluster(Restored(KEPT_MS, outdated=False))

    [event] = cluster.execute(RESTORE).events

    assert event == (
        "Normal",
        "OffsetsRestored",
        "Kafka had forgotten what delaytopic.shop.reminders has delivered, while there were no relays: restored as of "
        "2026-11-12T14:01:26Z",
    )
    assert cluster.records == []


def test_what_relays_had_gone_beyond_is_told_to_come_again_and_is_written_down() -> None:
    cluster = Cluster(Restored(KEPT_MS, outdated=True))
    later = owned().model_copy(update={"pending": 5})

    outcome = cluster.execute(WriteRecord(owned(), None), RESTORE, WriteRecord(later, None))

    assert outcome.events == [
        (
            "Warning",
            "OffsetsOutdated",
            "Kafka had forgotten what delaytopic.shop.reminders has delivered; what was backed up is of "
            "2026-11-12T14:01:26Z: records delivered since 2026-11-12T14:01:26Z come again",
        )
    ]
    told = OutdatedOffsets(restored_ms=NOW_MS, since_ms=KEPT_MS)
    assert [each.outdated for each in cluster.records] == [None, told, told]
    assert cluster.records[-1].pending == 5


def test_the_status_tells_for_a_day_what_comes_again() -> None:
    told = owned().model_copy(update={"outdated": OutdatedOffsets(restored_ms=NOW_MS, since_ms=KEPT_MS)})

    def said(at_ms: int) -> tuple[str, str]:
        [condition] = [each for each in plan(replace(look(record=told), now_ms=at_ms)).conditions
                       if each.type == "BackendReady"]  # fmt: skip
        return condition.status, condition.reason

    assert said(NOW_MS + DAY_MS - 1) == ("True", "OffsetsOutdated")
    assert said(NOW_MS + DAY_MS) == ("True", "Ready")


def test_a_kafka_that_had_forgotten_nothing_is_not_told_of() -> None:
    assert Cluster(None).execute(RESTORE).events == []
