"""Tests of what a reconciliation does about a DelayTopic that goes, is gone, or follows on another of its name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator import scenes
from tests.support.operator.scenes import (
    BACKEND_ID,
    CONFIG,
    DEPLOYMENT,
    NO_FLEET,
    NOW_MS,
    POD,
    altered,
    document,
    record,
    seen,
)

from delaytopic_operator.decide.plan import (
    Action,
    Apply,
    Delete,
    ForgetRecord,
    Plan,
    Purge,
    RemoveFinalizer,
    WriteRecord,
)
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.record import RecordState, RouteRecord, record_name
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import CommittedOffsets, Observation, Problem, Topics
from delaytopic_operator.rules.validate import Refusal
from delaytopic_operator.scaling.signals import FleetSignals, Reading

RETAINED = RecordState.RETAINED
PAUSED = {"delaytopic.dev/pause-reconciliation": "true"}
CONFIRMED = {"delaytopic.dev/confirm-delete": "reminders"}
STARTS = [
    "Apply ServiceAccount",
    "Apply ConfigMap",
    "Apply NetworkPolicy",
    "Apply PodDisruptionBudget",
    "Apply Deployment",
]
DISCARD = {"delaytopic.dev/discard-retained": BACKEND_ID}
DELETE: dict[str, Any] = {"deletionPolicy": "Delete", "annotations": CONFIRMED}
STOPPED: dict[str, Any] = {"fleet": NO_FLEET, "objects": [], "committed": CommittedOffsets()}


def words(decided: Plan) -> list[str]:
    """The actions, in a word each."""
    return [_word(action) for action in decided.actions]


def _word(action: Action) -> str:
    match action:
        case WriteRecord(written, _):
            return f"{written.state} {written.pending}"
        case Apply(found) | Delete(found):
            return f"{type(action).__name__} {found['kind']}"
        case Purge(_, topics):
            return "Purge topics" if topics else "Purge"
    return type(action).__name__


def configs_of(decided: Plan) -> list[Any]:
    """The relays' configuration, where it is written."""
    applied = [action.document for action in decided.actions if isinstance(action, Apply)]
    return [found["data"] for found in applied if found["kind"] == "ConfigMap"]


def retained(pending: int | None, namespace_uid: str = scenes.NAMESPACE_UID) -> RouteRecord:
    return record(namespace_uid).in_state(RETAINED, pending=pending)


def draining(pending: int | None, until_ms: int = NOW_MS + 60_000, uid: str = scenes.NAMESPACE_UID) -> RouteRecord:
    return record(uid).draining(NOW_MS - 1, until_ms, pending=pending, source_partitions=1)


def without_relays(source_end: int, topic_id: str = "a-1") -> Observation:
    """A DelayTopic that goes whose Deployment asks for no relay, and so many records were ever in its source."""
    facts = TopicFacts("shop.a", topic_id, 1, 1, None)
    idle = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replicas": 0}}
    return seen(
        document(),
        fleet=FleetFacts(idle, [], [], 1),
        objects=[idle],
        topics=Topics(KafkaView({"shop.a": facts})),
        signals=FleetSignals(partitions=1, source_end=Reading(source_end, NOW_MS)),
    )


CASES: list[tuple[str, Observation, list[str]]] = [
    ("drained", seen(document(), pending=0), ["Retained 0", "Delete Deployment"]),
    (
        "too late",
        seen(document(deleted_ms=NOW_MS - 900_000), pending=3),
        ["Retained 3", "Delete Deployment"],
    ),
    (
        "too late, unknown now, known at first",
        seen(document(deleted_ms=NOW_MS - 900_000), pending=None, record=draining(3)),
        ["Retained 3", "Delete Deployment"],
    ),
    (
        "killed after writing it down",
        seen(document(), pending=3, record=retained(3)),
        ["Delete Deployment"],
    ),
    ("killed after removing", seen(document(), record=retained(3), **STOPPED), ["RemoveFinalizer"]),
    ("killed after removing, drained", seen(document(), record=retained(0), **STOPPED), ["RemoveFinalizer"]),
    ("never begun", seen(document(), record=None, **STOPPED), ["RemoveFinalizer"]),
    ("no relay, never used", without_relays(source_end=0), ["Retained 0", "Delete Deployment"]),
    ("no relay, used", without_relays(source_end=1), ["Draining None", *STARTS]),
    (
        "no relay, of a source that was made anew",
        without_relays(source_end=0, topic_id="a-2"),
        ["Draining None", *STARTS],
    ),
    ("its class is gone", seen(document(), has_class=False, pending=3), ["Draining 3"]),
    ("its class is gone, drained", seen(document(), has_class=False), ["Retained 0", "Delete Deployment"]),
    ("paused", seen(document(annotations=PAUSED), pending=0), []),
    (
        "paused in a namespace that goes",
        seen(document(annotations=PAUSED), pending=0, terminates=True),
        ["Retained 0", "Delete Deployment"],
    ),
    ("not confirmed", seen(document(deletionPolicy="Delete"), pending=2), []),
    ("confirmed", seen(document(**DELETE), pending=2), ["Retained 2", "Delete Deployment"]),
    (
        "confirmed, pods left",
        seen(document(**DELETE), record=retained(2), objects=[], fleet=FleetFacts(None, [POD], [], 1)),
        [],
    ),
    (
        "confirmed, stopped",
        seen(document(**DELETE), record=retained(2), **STOPPED),
        ["Purge topics", "ForgetRecord", "RemoveFinalizer"],
    ),
    ("confirmed, purged", seen(document(**DELETE), record=None, **STOPPED), ["RemoveFinalizer"]),
    (
        "confirmed, the record cannot be read",
        seen(document(**DELETE), record=None, record_problem=Problem("RecordUnreadable", "newer", stalled=True)),
        ["Delete Deployment", "RemoveFinalizer"],
    ),
    (
        "confirmed, of a former namespace of that name",
        seen(document(**DELETE), record=retained(2, "former"), **STOPPED),
        ["RemoveFinalizer"],
    ),
    ("gone with Retain", seen(None, pending=4), ["Retained 4", "Delete Deployment"]),
    ("gone, retained", seen(None, record=retained(4), **STOPPED), []),
    ("gone, handed over", seen(None, pending=4, record=draining(4)), []),
    ("gone, handed over, drained", seen(None, pending=0, record=draining(4)), ["Retained 0", "Delete Deployment"]),
    ("gone, too late", seen(None, pending=4, record=draining(4, NOW_MS)), ["Retained 4", "Delete Deployment"]),
    ("gone, nothing written down", seen(None, record=None), ["Delete Deployment"]),
    (
        "gone, the record cannot be read",
        seen(None, record=None, record_problem=Problem("RecordUnreadable", "newer", stalled=True)),
        [],
    ),
    ("another's, retained", seen(document(deleted_ms=None), record=retained(4, "former"), **STOPPED), []),
    (
        "another's, active",
        seen(document(deleted_ms=None), record=record("former"), pending=4),
        ["Retained 4", "Delete Deployment"],
    ),
    ("another's, drains", seen(document(deleted_ms=None), record=draining(4, uid="former"), pending=4), []),
    (
        "another's, drains, discarded too early",
        seen(document(deleted_ms=None, annotations=DISCARD), record=draining(4, uid="former"), pending=4),
        [],
    ),
    (
        "another's, discarded",
        seen(document(deleted_ms=None, annotations=DISCARD), record=retained(4, "former"), **STOPPED),
        ["Purge", "Retained 0"],
    ),
    (
        "own, discarded",
        seen(document(deleted_ms=None, annotations=DISCARD), record=retained(4), **STOPPED),
        ["Purge", "Retained 0"],
    ),
    (
        "own, discarded while relays end",
        seen(document(deleted_ms=None, annotations=DISCARD), record=retained(4), pending=4),
        ["Delete Deployment"],
    ),
]


@pytest.mark.parametrize(("what", "observation", "expected"), CASES, ids=[case[0] for case in CASES])
def test_a_pass_does_the_next_steps_in_their_order(what: str, observation: Observation, expected: list[str]) -> None:
    assert words(plan(observation)) == expected


def test_a_drain_takes_nothing_more_in_and_is_written_down_first() -> None:
    decided = plan(seen(document(), pending=3))

    assert words(decided)[0] == "Draining 3"
    written = decided.actions[0]
    assert isinstance(written, WriteRecord)
    assert (written.record.drain_since_ms, written.record.drain_until_ms) == (NOW_MS, NOW_MS + 900_000)
    configs = configs_of(decided)
    assert all("suspend: Ingest" in str(data) for data in configs)
    assert len(configs) == 1
    assert not any(isinstance(action, RemoveFinalizer) for action in decided.actions)


def test_with_a_fixed_delay_relays_take_in_what_they_have_to_deliver() -> None:
    decided = plan(seen(document(schedule={"fixedDelay": "30s"}), pending=3))

    configs = configs_of(decided)
    assert len(configs) == 1
    assert "suspend: Ingest" not in str(configs)


def test_in_a_namespace_that_goes_the_object_is_released_while_its_relays_drain() -> None:
    decided = plan(seen(document(), pending=3, terminates=True))

    assert words(decided)[0] == "Draining 3"
    assert isinstance(decided.actions[-1], RemoveFinalizer)
    assert "Delete Deployment" not in words(decided)


def test_what_is_purged_is_forgotten_by_its_own_name() -> None:
    decided = plan(seen(document(**DELETE), record=retained(2), **STOPPED))

    assert ForgetRecord(record_name(scenes.KEY)) in decided.actions
    assert [event.reason for event in decided.events] == ["BacklogRemoved"]


def test_a_record_that_was_copied_is_not_written_for_another() -> None:
    copied = record().model_copy(update={"name": "another"})

    decided = plan(seen(None, record=copied))

    assert words(decided) == []


def test_relays_that_say_nothing_are_no_empty_backlog() -> None:
    silent = altered(seen(document(), pending=None), unreachable_since_ms=NOW_MS)

    assert "RemoveFinalizer" not in words(plan(silent))
    assert DEPLOYMENT["metadata"]["namespace"] == CONFIG.namespace


def test_a_going_delay_topic_stays_while_its_relays_may_run_where_the_operator_does_not_look() -> None:
    refusal = Refusal("RelayNamespaceNotAllowed", "the operator runs no relays in elsewhere", stalled=False)
    unseen: dict[str, Any] = {**STOPPED, "verdict": refusal}

    decided = plan(seen(document(**DELETE), **unseen))
    with_its_namespace = plan(seen(document(**DELETE), terminates=True, **unseen))

    assert (words(decided), decided.progress.stalled_reason) == ([], "RelayNamespaceNotAllowed")
    assert words(with_its_namespace) == ["Retained None", "RemoveFinalizer"]
