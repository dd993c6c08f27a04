"""A DelayTopic that needs a second relay, and a reconciliation of it whose edges record what they are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.support.operator.scenes import CONFIG, DEPLOYMENT, KEY, NO_FLEET, NOW_MS, altered, fleet
from tests.unit.operator.decide.test_planner import living, look
from tests.unit.operator.scaling.scenes import source

from delaytopic_operator.decide.plan import Apply, Plan
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.errors import KafkaUnavailable, ObjectRejected, OperatorError
from delaytopic_operator.execute.executor import Executor, Outcome
from delaytopic_operator.execute.ledgers import RolloutLimiter, ScalingLedger
from delaytopic_operator.fleet.looks import FleetLooks
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.rollouts import NoTurn, Rollouts
from delaytopic_operator.observe.observation import Observation, Problem
from delaytopic_operator.reconciler import Reconciler
from delaytopic_operator.scaling.decision import Decision
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.scaling.state import ScalingMemory

REMEMBERED = ScalingMemory(partitions=4, replicas=1, asked=1)
OLD_CLASS = {"effective": {"delayClassGeneration": 0}}
"""The status before a change of the class is applied."""
WITHHELD: dict[str, dict[str, Any]] = {
    "the Secret is missing": {"secrets_problem": Problem("SecretMissing", "create it")},
    "the rollout waits": {"secrets_version": "another", "status": OLD_CLASS, "no_turn": NoTurn(CONFIG.images.relay)},
}


def growing(annotations: dict[str, str] | None = None, **changes: Any) -> Observation:
    """Observe one relay where two are the least; all else is as it shall be."""
    began = look(living(autoscaling={"minReplicas": 1}), objects=[], fleet=NO_FLEET)
    applied = [action.document for action in plan(began).actions if isinstance(action, Apply)]
    objects = [{**each, "metadata": {**each["metadata"], "uid": f"uid-{n}"}} for n, each in enumerate(applied)]
    deployment = {**objects[-1], "status": DEPLOYMENT["status"]}
    usual = {
        "objects": [*objects[:-1], deployment],
        "fleet": replace(fleet(0), deployment=deployment),
        "signals": gather([], source(NOW_MS, 4), NOW_MS),
        "saved_memory": REMEMBERED,
    }
    document = living(annotations=annotations, autoscaling={"minReplicas": 2})
    return look({**document, "status": changes.pop("status", {})}, **{**usual, **changes})


class RecordedKube:
    """An API server as the executor sees it; it refuses Deployments while `refuses`."""

    def __init__(self) -> None:
        self.refuses = False
        self.written: list[str] = []

    def apply(self, document: dict[str, Any], _: str) -> None:
        """Record the kind that is written."""
        if self.refuses and document["kind"] == "Deployment":
            raise ObjectRejected("no more pods for this team")
        self.written.append(document["kind"])


class Reconciliation:
    """The reconciler, the executor and the ledger, between an observation that is given and a status that is kept."""

    def __init__(self, seen: Observation) -> None:
        self.seen = seen
        self.edits = 0
        self.called: list[Key] = []
        self.kube = RecordedKube()
        self.ledger = ScalingLedger()
        self.turns = RolloutLimiter(CONFIG.rollouts)
        edges: Any = self
        self.looks = FleetLooks(edges, self.ledger, self.turns, edges, edges, CONFIG, lambda: 0.0)
        self.plans: list[Plan] = []
        self.events: list[str] = []
        self.messages: list[str] = []
        """The sentences of these events."""
        self.in_group: list[str] | KafkaUnavailable = []
        """The members of the relays' group; or the error of a Kafka that cannot tell."""
        self.noted: list[frozenset[str]] = []

    def run(self, seen: Observation | None = None) -> OperatorError | None:
        """Reconcile once; return the failure."""
        if seen is not None:
            self.seen, self.edits = seen, self.edits + 1
        edges: Any = self
        kube: Any = self.kube
        executor = Executor(kube, lambda *_: None, edges, CONFIG, lambda: None, lambda _: None)
        try:
            reconciler = Reconciler(edges, executor, edges, edges, edges, self.ledger, self.turns, self.looks)
            done = reconciler.reconcile(self.seen.key, self.seen.now_ms, self.seen.now_ms)
        except OperatorError as error:
            return error
        self.called += done.others
        return None

    def observe(self, _: Key, now_ms: int) -> Observation:
        """Return the observation."""
        return replace(self.seen, now_ms=now_ms)

    def judged_by(self, _: Key) -> int:
        """Return the number of observations that were given."""
        return self.edits

    def look_again(self, seen: Observation, *, in_full: bool) -> Observation:
        """Return the same numbers."""
        again = altered(self.seen, now_ms=seen.now_ms, asked_for_ms=seen.fleet.asked_for_ms)
        return altered(again, memory=seen.fleet.memory, no_turn=seen.route.no_turn)

    def rollouts(self) -> Rollouts:
        """Return the relays that start anew, as observed."""
        return self.seen.route.rollouts

    def note_relays(self, seen: Observation) -> None:
        """Keep the names of the relays that there are."""
        self.noted.append(seen.fleet.living)

    def remove_members(self, _: Observation, group_id: str, names: Sequence[str]) -> list[str]:
        """Take members out of the group."""
        assert group_id == "delaytopic.shop.reminders"
        if isinstance(self.in_group, KafkaUnavailable):
            raise self.in_group
        removed = [name for name in names if name in self.in_group]
        self.in_group = [name for name in self.in_group if name not in names]
        return removed

    def note_backup(self, _: Observation) -> None:
        """Keep nothing."""

    def report(self, _: Observation, decided: Plan, outcome: Outcome, *, dry_run: bool) -> None:
        """Keep the plan and the events."""
        assert not (dry_run and outcome.events)
        self.plans.append(decided)
        events = (*decided.events, *outcome.events)
        self.events += [event.reason for event in events]
        self.messages += [event.message for event in events]

    def update(self, seen: Observation, decided: Plan, outcome: Outcome) -> None:
        """Measure nothing."""

    def update_scaling(self, seen: Observation, decision: Decision) -> None:
        """Measure nothing."""

    def remembered(self) -> tuple[int | None, int | None] | None:
        """Return the number of relays and the size that the last step led to, as remembered in this process."""
        memory = self.ledger.memory(KEY)
        return (memory.replicas, memory.step.after if memory.step else None) if memory is not None else None
