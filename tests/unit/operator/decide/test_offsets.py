"""The times at which the offsets of relays are read, backed up and restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.operator.scenes import (
    CONFIG,
    DEPLOYMENT,
    NO_FLEET,
    NOW_MS,
    POD,
    document,
    fleet,
    record,
    seen,
)

from delaytopic_api.documents import Ownership
from delaytopic_operator.decide.plan import Apply, Delete, Plan, Purge, RemoveFinalizer, RestoreOffsets, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.kafka_view import Committed, KafkaView, TopicFacts
from delaytopic_operator.model.offsets_backup import OffsetsBackup
from delaytopic_operator.model.record import RecordState, Role, RouteRecord, TopicRecord
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage
from delaytopic_operator.observe.observation import CommittedOffsets, Observation, Problem, Topics
from delaytopic_operator.observe.offsets_cache import AGAIN_MS, RETRY_MS, SILENT_MS, OffsetsCache

LIVING = document(deleted_ms=None)
BACKUP = OffsetsBackup("shop.a", "a-1", {0: Committed(7, "1;9;5;3;")})
LATER = OffsetsBackup("shop.a", "a-1", {0: Committed(8, "1;10;6;4;")})
NOTHING = OffsetsBackup("shop.a", "a-1", {})
AWAY = CommittedOffsets(problem=Problem("KafkaUnreachable", "Kafka did not answer", passing=True))
FORBIDDEN = CommittedOffsets(problem=Problem("AuthorizationFailed", "grant Describe on the group"))
SETTINGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
LARGER = {"shop.a.dlq": {"max.message.bytes": "1114124"}}
IDLE = FleetFacts({**DEPLOYMENT, "spec": {"replicas": 0}}, [], [], 1)
SILENT = FleetFacts(DEPLOYMENT, [POD], [RelayPage("relay-1", None, "does not answer")], 1)
DISCARD = {"delaytopic.dev/discard-retained": "delaytopic.shop.reminders"}


def topics(source_id: str = "a-1", **facts: Any) -> Topics:
    """All of them are there."""
    names = {"shop.a": source_id, "shop.b": "b-1", "shop.a.dlq": "d-1"}
    view = KafkaView(
        {
            name: TopicFacts(name, topic_id, 1, 1, {**SETTINGS, **LARGER.get(name, {})})
            for name, topic_id in names.items()
        }
    )
    return Topics(view, **facts)


def kept(offsets: OffsetsBackup | None = BACKUP, state: RecordState = RecordState.ACTIVE) -> RouteRecord:
    """A record of a route, all of whose topics were seen, with a backup of offsets."""
    roles = {Role.TARGET: TopicRecord(name="shop.b", ownership=Ownership.CREATED, topic_id="b-1")}
    roles[Role.DEAD_LETTER] = TopicRecord(name="shop.a.dlq", ownership=Ownership.CREATED, topic_id="d-1")
    made = record().in_state(state)
    for role, topic in roles.items():
        made = made.with_role(role, topic)
    return made.model_copy(update={"offsets": offsets})


def restores(decided: Plan) -> list[RestoreOffsets]:
    return [action for action in decided.actions if isinstance(action, RestoreOffsets)]


def written(decided: Plan) -> list[OffsetsBackup | None]:
    """The offsets in the records that are written."""
    return [action.record.offsets for action in decided.actions if isinstance(action, WriteRecord)]


def away(found: Mapping[str, Any] | None = LIVING, **changes: Any) -> Observation:
    """A route without relays."""
    usual: dict[str, Any] = {"topics": topics(), "fleet": NO_FLEET, "objects": [], "record": kept()}
    return seen(found, **{**usual, **changes})


def test_offsets_are_restored_before_relays_begin() -> None:
    decided = plan(away())

    kinds = [
        action.document["kind"] if isinstance(action, Apply) else type(action).__name__ for action in decided.actions
    ]
    assert restores(decided) == [RestoreOffsets("delaytopic.shop.reminders", BACKUP)]
    assert kinds.index("RestoreOffsets") < kinds.index("Deployment")


def test_offsets_of_a_topic_that_was_made_anew_are_not_restored() -> None:
    accept = {"delaytopic.dev/accept-topic-recreation": "a-2"}

    decided = plan(away(document(deleted_ms=None, annotations=accept), topics=topics("a-2")))

    assert restores(decided) == []
    assert any(isinstance(action, Apply) and action.document["kind"] == "Deployment" for action in decided.actions)


def test_nothing_is_restored_beside_relays_that_run() -> None:
    assert restores(plan(seen(LIVING, topics=topics(), record=kept()))) == []


def test_nothing_is_restored_while_no_relays_begin() -> None:
    decided = plan(away(fleet=IDLE, objects=[dict(IDLE.deployment or {})]))

    assert restores(decided) == []


def test_offsets_that_kafka_forgot_are_restored_while_relays_cannot_start() -> None:
    silent = away(fleet=SILENT, objects=[DEPLOYMENT], committed=CommittedOffsets(NOTHING))

    assert len(restores(plan(silent))) == 1
    assert restores(plan(replace(silent, committed=CommittedOffsets(BACKUP)))) == []


def test_a_drain_that_needs_relays_again_restores_their_offsets_first() -> None:
    decided = plan(away(document(), fleet=IDLE, objects=[], pending=None))

    kinds = [type(action).__name__ for action in decided.actions]
    assert kinds.index("RestoreOffsets") < kinds.index("Apply")


@pytest.mark.parametrize(
    ("what", "observation"),
    [
        ("scaled to zero", away(fleet=IDLE, committed=CommittedOffsets(LATER))),
        ("deleted", away(document(), record=kept(state=RecordState.RETAINED), committed=CommittedOffsets(LATER))),
        ("gone", away(None, record=kept(state=RecordState.RETAINED), committed=CommittedOffsets(LATER))),
    ],
)
def test_what_relays_left_is_written_down(what: str, observation: Observation) -> None:
    assert written(plan(observation)) == [replace(LATER, read_ms={0: NOW_MS})], what


def test_an_object_that_goes_is_held_until_the_offsets_of_its_relays_are_written_down() -> None:
    first = plan(seen(document(), pending=0, record=kept(None)))
    retained = kept(None, RecordState.RETAINED)
    pods = plan(away(document(), record=retained, fleet=FleetFacts(None, [POD], [], 1)))
    unanswered = plan(away(document(), record=retained, committed=AWAY))
    last = plan(away(document(), record=retained, committed=CommittedOffsets(BACKUP)))

    assert [type(action) for action in first.actions] == [WriteRecord, Delete]
    assert [pods.actions, unanswered.actions] == [[], []]
    assert [type(action) for action in last.actions] == [WriteRecord, RemoveFinalizer]
    assert written(last) == [replace(BACKUP, read_ms={0: NOW_MS})]
    assert [event.reason for each in (first, pods, unanswered, last) for event in each.events] == ["BacklogRetained"]


def test_an_object_is_not_held_for_offsets_that_cannot_be_read() -> None:
    retained = kept(None, RecordState.RETAINED)
    forbidden = plan(away(document(), record=retained, committed=FORBIDDEN))
    unreachable = plan(away(document(), record=retained, committed=AWAY, unreachable_since_ms=NOW_MS - 660_000))

    for decided in (forbidden, unreachable):
        assert [type(action) for action in decided.actions] == [RemoveFinalizer]
        assert [event.reason for event in decided.events] == ["BacklogRetained", "OffsetsNotBackedUp"]
    assert "grant Describe on the group" in forbidden.events[-1].message


def test_a_discarded_backlog_does_not_come_back_with_its_offsets() -> None:
    retained = kept(BACKUP, RecordState.RETAINED)

    decided = plan(
        away(document(deleted_ms=None, annotations=DISCARD), record=retained, committed=CommittedOffsets(BACKUP))
    )

    assert [type(action) for action in decided.actions] == [Purge, WriteRecord]
    assert written(decided) == [None]


def test_brokers_that_forget_soon_are_told_of() -> None:
    soon, late = (
        next(
            condition
            for condition in plan(seen(LIVING, topics=topics(offsets_retention_ms=kept_ms))).conditions
            if condition.type == "BackendReady"
        )
        for kept_ms in (3_600_000, 604_800_000)
    )

    assert "set offsets.retention.minutes to 10080" in soon.message
    assert "1h" in soon.message
    assert (soon.status, late.message) == ("True", "schedules wait in RedisZset")


# -- when it is read


def looks(memory: OffsetsCache, observation: Observation, *after_ms: int) -> list[bool]:
    """Tell whether it is due at these times, and was then kept."""
    found = []
    for ms in after_ms:
        due = memory.is_due(replace(observation, now_ms=NOW_MS + ms))
        if due:
            memory.was_read(observation.key, NOW_MS + ms, kept=True)
        found.append(due)
    return found


def test_it_is_read_once_when_the_last_relay_has_gone_and_then_seldom() -> None:
    ending = away(fleet=replace(IDLE, pods=[POD]))
    memory = OffsetsCache()

    assert looks(memory, ending, 0, 1_000) == [False, False]
    assert looks(memory, away(fleet=IDLE), 2_000, 3_000, SILENT_MS, AGAIN_MS + 2_000) == [True, False, False, True]


def test_after_a_failure_it_is_read_again_soon() -> None:
    memory = OffsetsCache()
    idle = away(fleet=IDLE)

    assert memory.is_due(idle)
    memory.was_read(idle.key, NOW_MS, kept=False)

    assert [memory.is_due(replace(idle, now_ms=NOW_MS + ms)) for ms in (1_000, RETRY_MS)] == [False, True]


def test_each_time_that_relays_have_gone_it_is_read_anew() -> None:
    memory = OffsetsCache()

    assert looks(memory, away(fleet=IDLE), 0) == [True]
    assert looks(memory, away(fleet=fleet(0)), 1_000) == [False]
    assert looks(memory, away(fleet=IDLE), 2_000) == [True]


def test_while_relays_start_without_a_word_it_is_read_each_hour() -> None:
    assert looks(OffsetsCache(), away(fleet=SILENT), 0, 60_000, SILENT_MS, SILENT_MS + 1) == [
        False,
        False,
        True,
        False,
    ]


def test_a_pod_that_has_ended_is_no_relay() -> None:
    ended = {**POD, "status": {"phase": "Failed"}}

    assert looks(OffsetsCache(), away(fleet=replace(IDLE, pods=[ended])), 0) == [True]


@pytest.mark.parametrize(
    "observation",
    [
        away(record=None),
        away(record=record().with_role(Role.SOURCE, None)),
        away(),
        away(document(), fleet=FleetFacts(None, [POD], [], 1)),
        away(document(), fleet=IDLE),
    ],
    ids=["no record", "no source", "relays begin", "a relay ends", "relays may come back"],
)
def test_it_is_not_read_where_there_is_nothing_to_keep(observation: Observation) -> None:
    assert CONFIG.poll.ms < RETRY_MS
    assert not OffsetsCache().is_due(observation)
