"""Relays whose class no longer allows what they do run on or stop, as it says, and go on when it allows it again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.operator.scenes import (
    CONFIG,
    DEPLOYMENT,
    KEY,
    NOW_MS,
    altered,
    document,
    seen,
)
from tests.unit.operator.decide.test_planner import id_of, living, look, owned, said
from tests.unit.operator.scaling.scenes import source

from delaytopic_api.errors import Problem
from delaytopic_operator.decide.plan import Apply, Plan, RestoreOffsets, StopRelays, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.execute.executor import Executor, Outcome
from delaytopic_operator.model.kafka_view import Committed
from delaytopic_operator.model.offsets_backup import OffsetsBackup, updated
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import PAUSE, CommittedOffsets, Observation, is_paused
from delaytopic_operator.rules.revoked import Revoked
from delaytopic_operator.rules.validate import Refusal
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import Backlog, ScalingMemory

PROBLEM = Problem("spec.source.topic", "shop.a is not allowed as a source: DelayClass standard allows shop.x.*")
REFUSAL = Refusal("SourceNotAllowed", str(PROBLEM))
KEEP = Revoked("standard", (PROBLEM,), suspends=False)
SUSPEND = Revoked("standard", (PROBLEM,), suspends=True)
STOPPED: dict[str, Any] = {**DEPLOYMENT, "spec": {"replicas": 0}, "status": {"observedGeneration": 1}}


def refused(gone: Revoked, refusal: Refusal = REFUSAL, **changes: Any) -> Observation:
    return look(verdict=refusal, revoked=gone, objects=[DEPLOYMENT], **changes)


def message_of(found: Observation, type: str) -> str:
    return next(each.message for each in plan(found).conditions if each.type == type)


def test_relays_run_on_by_default_and_the_status_says_that_their_right_is_gone() -> None:
    found = refused(KEEP)

    assert plan(found).actions == []
    assert said(found)["PolicyAccepted"] == ("False", "AccessRevoked")
    assert said(found)["Stalled"] == ("True", "AccessRevoked")
    assert said(found)["RelayAvailable"] == ("True", "RelaysReady")
    assert message_of(found, "PolicyAccepted") == (
        "DelayClass standard (access.sourceTopics) no longer allows what the relays do: spec.source.topic: shop.a is "
        "not allowed as a source: DelayClass standard allows shop.x.*. They run on with the class's login, as "
        "access.onRevoked is Keep. Ask who looks after the class to allow it again, or delete the DelayTopic; nothing "
        "has to be tried again."
    )


def test_relays_are_scaled_to_zero_where_the_class_says_so() -> None:
    found = refused(SUSPEND)

    assert plan(found).actions == [StopRelays(DEPLOYMENT)]
    assert said(found)["RelayAvailable"] == ("False", "AccessRevoked")
    assert "scaled to zero, as access.onRevoked is Suspend" in message_of(found, "PolicyAccepted")


def test_relays_that_have_stopped_stay_so_and_are_not_said_to_have_nothing_to_do() -> None:
    found = refused(SUSPEND, fleet=FleetFacts(STOPPED, [], [], 4))
    found = altered(found, objects=[STOPPED])

    assert plan(found).actions == []
    assert said(found)["RelayAvailable"] == ("False", "AccessRevoked")


def test_an_edit_that_is_refused_for_another_reason_keeps_no_right() -> None:
    found = refused(SUSPEND, Refusal("InvalidSpec", "spec.precision: is required"))

    assert StopRelays(DEPLOYMENT) in plan(found).actions
    assert message_of(found, "PolicyAccepted").endswith(
        "Besides, the DelayTopic is refused: spec.precision: is required."
    )


def test_a_pause_keeps_relays_that_may_run_on_and_no_others() -> None:
    paused = living(annotations={PAUSE: "true"})

    assert [is_paused(look(paused, verdict=REFUSAL, revoked=gone)) for gone in (KEEP, SUSPEND)] == [True, False]


def test_offsets_that_relays_committed_are_written_down_as_kafka_forgets_them() -> None:
    kept = OffsetsBackup("shop.a", id_of("shop.a"), {0: Committed(7, "")})
    found = refused(SUSPEND, fleet=FleetFacts(STOPPED, [], [], 4), committed=CommittedOffsets(kept))

    (written,) = [each for each in plan(found).actions if isinstance(each, WriteRecord)]

    assert written.record.offsets == updated(None, kept, NOW_MS)


def test_the_zero_is_nobodys_decision_and_what_is_pending_is_unknown_from_then_on() -> None:
    before = ScalingMemory(partitions=4, replicas=3, backlog=Backlog(NOW_MS, 0, None, 9))

    written = [each for each in plan(refused(SUSPEND, saved_memory=before)).actions if isinstance(each, WriteRecord)]

    assert written == [WriteRecord(owned(), ScalingMemory(partitions=4))]


def test_relays_go_on_from_their_offsets_once_they_are_allowed_again() -> None:
    kept = OffsetsBackup("shop.a", id_of("shop.a"), {0: Committed(7, "")}, {0: NOW_MS})
    record = owned().model_copy(update={"offsets": kept})
    signals = gather([], source(NOW_MS, 4), NOW_MS)
    known = {"record": record, "saved_memory": ScalingMemory(partitions=4), "signals": signals}
    found = look(fleet=FleetFacts(STOPPED, [], [], 4), objects=[STOPPED], **known)

    actions = plan(found).actions

    deployments = [
        each.document for each in actions if isinstance(each, Apply) and each.document["kind"] == "Deployment"
    ]
    assert [each["spec"]["replicas"] for each in deployments] == [1]
    assert RestoreOffsets(record.group_id, kept) in actions


def test_relays_stop_while_their_delay_topic_is_deleted() -> None:
    found = seen(document(), verdict=REFUSAL, revoked=SUSPEND, pending=3)

    assert StopRelays(DEPLOYMENT) in plan(found).actions


class Patched:
    """An API server that remembers what was patched."""

    def __init__(self) -> None:
        self.patches: list[tuple[Any, ...]] = []

    def patch(self, *call: Any) -> None:
        self.patches.append(call[1:])


def test_relays_stop_by_their_number_alone_and_it_is_told() -> None:
    kube: Any = Patched()
    executor = Executor(kube, lambda *_: None, kube, CONFIG, lambda: None, lambda _: None)

    outcome: Outcome = executor.execute(refused(SUSPEND), Plan(actions=[StopRelays(DEPLOYMENT)]))

    name = DEPLOYMENT["metadata"]["name"]
    patch = {"metadata": {"uid": "d-1"}, "spec": {"replicas": 0}}
    assert kube.patches == [(CONFIG.namespace, name, patch, "delaytopic-operator")]
    assert [event.message for event in outcome.events] == [
        "From 1 to 0 relays: their DelayClass no longer allows what they do."
    ]


@pytest.mark.parametrize("gone", [KEEP, SUSPEND])
def test_nothing_is_said_of_relays_where_there_are_none(gone: Revoked) -> None:
    found = refused(gone, fleet=FleetFacts(None, [], [], 4))

    assert said(found)["PolicyAccepted"] == ("False", "SourceNotAllowed")
    assert found.key == KEY
