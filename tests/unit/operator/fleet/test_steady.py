"""Tests of when a look at the numbers of a DelayTopic is enough, and when a whole look has to follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.operator.scenes import CONFIG, DEPLOYMENT, NO_FLEET, NOW_MS, altered, page
from tests.unit.operator.decide.test_planner import living, look, topics
from tests.unit.operator.scaling.scenes import source

from delaytopic_api.documents import ConditionType, KafkaConnection
from delaytopic_operator.decide.plan import Apply, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.fleet.steady import Numbers, Steady, numbers, shown, steady
from delaytopic_operator.model.conditions import UNKNOWN, Condition
from delaytopic_operator.model.declared_rules import declared
from delaytopic_operator.observe.fleet import FleetFacts
from delaytopic_operator.observe.observation import Observation, Problem, Topics
from delaytopic_operator.report.status import status_document
from delaytopic_operator.scaling.signals import gather
from delaytopic_process.open_transactions import OpenTransaction

PARTITIONS = 4
LATER_MS = NOW_MS + CONFIG.poll.ms


def with_page(seen: Observation, pending: int = 0, **changes: Any) -> Observation:
    """The same with what its relay says now."""
    told = page(pending, partitions=PARTITIONS, **changes)
    fleet = replace(seen.fleet, pages=[told])
    statuses = [told.status] if told.status is not None else []
    return altered(seen, fleet=fleet, signals=gather(statuses, source(seen.now_ms, PARTITIONS), seen.now_ms))


def quiet() -> Observation:
    """Observe one relay that delivers, where everything is as it shall be and was written down."""
    began = look(living(), objects=[], fleet=NO_FLEET)
    applied = [action.document for action in plan(began).actions if isinstance(action, Apply)]
    objects = [{**each, "metadata": {**each["metadata"], "uid": f"uid-{n}"}} for n, each in enumerate(applied)]
    deployment = {**objects[-1], "status": DEPLOYMENT["status"]}
    fleet = FleetFacts(deployment, [], [], PARTITIONS)
    seen = with_page(look(living(), objects=[*objects[:-1], deployment], fleet=fleet))
    for _ in range(3):
        decided = plan(seen)
        for action in decided.actions:
            assert isinstance(action, WriteRecord), action
            seen = altered(seen, record=action.record, saved_memory=action.memory)
        memory = decided.scaling.held if decided.scaling is not None else None
        seen = altered(seen, memory=memory)
    return seen


SEEN = quiet()


def known() -> Steady:
    """Return the facts that a whole look at it leaves."""
    found = steady(SEEN, plan(SEEN))
    assert found is not None
    return found


def again(**changes: Any) -> Observation:
    """The same a poll later, with some of it changed."""
    seen = altered(SEEN, now_ms=LATER_MS, objects=())
    return altered(with_page(seen), **changes)


def test_numbers_alone_are_looked_at_where_nothing_is_to_do() -> None:
    found = numbers(again(), known())

    assert found is not None
    assert found.decision is not None
    assert found == Numbers(found.decision, found.conditions, LATER_MS + CONFIG.poll.ms)
    assert (found.decision.changed, found.decision.decided_at_ms) == (False, LATER_MS)


def test_a_look_keeps_no_objects_as_only_whole_looks_compare_them() -> None:
    assert (len(SEEN.route.objects), known().seen.route.objects) == (5, ())


def test_a_look_keeps_of_secrets_those_alone_that_log_in_to_kafka() -> None:
    accepted = SEEN.route.accepted
    assert accepted is not None
    password = {"type": "ScramSha512", "username": "u", "passwordSecret": {"secretName": "kafka", "password": "p"}}
    connection = KafkaConnection.model_validate({"bootstrapServers": "kafka:9092", "authentication": password})
    verdict = replace(accepted, settings=replace(accepted.settings, connection=connection))
    kafka, redis = ({"metadata": {"resourceVersion": "7", "uid": "u"}, "data": {"p": "c2VjcmV0"}} for _ in range(2))
    seen = altered(SEEN, verdict=verdict, secrets={"kafka": kafka, "redis": redis, "gone": None})

    found = steady(seen, plan(SEEN))

    assert found is not None
    assert found.seen.route.secrets == {"kafka": kafka, "redis": {"metadata": {"resourceVersion": "7"}}, "gone": None}


def test_a_look_shows_in_the_status_what_a_whole_one_would() -> None:
    whole = altered(with_page(altered(SEEN, now_ms=LATER_MS), pending=7))
    before = known()
    kept = altered(whole, objects=(), deployment=before.seen.fleet.deployment, pods=before.seen.fleet.pods)
    found = numbers(kept, before)
    assert found is not None

    told = status_document(kept, shown(kept, before, found))

    assert told["status"]["backlog"]["pending"] == 7
    assert told == status_document(whole, plan(whole))


@pytest.mark.parametrize(
    "changes",
    [
        {"objects": ()},
        {"secrets_version": "another"},
        {"topics_problem": Problem("KafkaUnavailable", "no answer", passing=True)},
        {"record_problem": Problem("RecordUnreadable", "not JSON", stalled=True)},
        {"topics": None},
        {"topics": replace(topics(), other_clusters=frozenset({"1a2b3c4d"}))},
        {"record": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whole_looks_go_on_while_something_is_to_do_or_not_known(changes: dict[str, Any]) -> None:
    seen = altered(SEEN, **changes)

    assert steady(seen, plan(seen)) is None


def test_whole_looks_go_on_until_all_partitions_are_read_by_the_declared_rules() -> None:
    assert SEEN.route.record is not None
    assert SEEN.route.accepted is not None
    rules = declared(None, SEEN.route.accepted.settings, NOW_MS)
    seen = altered(SEEN, record=SEEN.route.record.model_copy(update={"rules": rules}))

    assert steady(seen, replace(plan(seen), actions=())) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": replace(topics(), released=frozenset({"delaytopic.b.3"}))},
        {"topics": replace(topics(), offsets_retention_ms=60_000)},
        {"topics": replace(topics("shop.b"))},
        {"topics": None},
        {"backend": Condition(ConditionType.BACKEND_READY, UNKNOWN, "RedisUnavailable", "no answer")},
    ],
    ids=["a bucket is empty", "offsets are forgotten", "a topic is missing", "no topics", "Redis"],
)
def test_what_changes_in_kafka_or_redis_brings_a_whole_look(changes: dict[str, Any]) -> None:
    assert numbers(again(**changes), known()) is None


def test_a_transaction_that_lasts_brings_a_whole_look() -> None:
    assert SEEN.topics is not None
    held: Topics = replace(SEEN.topics, open_transactions={0: OpenTransaction(7, NOW_MS - 3_600_000, 9)})

    assert numbers(again(topics=held), known()) is None


def test_records_that_need_more_relays_bring_a_whole_look() -> None:
    waiting = with_page(again(), pending=10)
    late = altered(waiting, signals=gather([_overdue(waiting)], source(LATER_MS, PARTITIONS), LATER_MS))

    assert numbers(waiting, known()) is not None
    assert numbers(late, known()) is None


def test_a_partition_that_fails_brings_a_whole_look() -> None:
    assert numbers(with_page(again(), state="Failed"), known()) is None


def test_relays_that_do_not_answer_bring_a_whole_look() -> None:
    silent = replace(SEEN.fleet, pages=[])
    seen = again(fleet=silent, signals=gather([], source(LATER_MS, PARTITIONS), LATER_MS))

    assert numbers(seen, known()) is None


def _overdue(seen: Observation) -> Any:
    [told] = seen.fleet.pages
    assert told.status is not None
    first, *others = told.status.shards
    shards = [first.model_copy(update={"overdue": 10_000_000, "pending": 10_000_000}), *others]
    return told.status.model_copy(update={"overdue": 10_000_000, "pending": 10_000_000, "shards": shards})
