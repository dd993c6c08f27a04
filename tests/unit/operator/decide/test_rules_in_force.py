"""Tests of when the rules of a DelayTopic are declared, and when relays are known to read by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import yaml
from tests.support.operator.scenes import DECLARED_MS, NOW_MS, document, fleet, record, seen
from tests.unit.operator.decide.test_planner import living, look

from delaytopic_operator.decide.plan import Apply, WriteRecord
from delaytopic_operator.decide.planner import plan
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.fleet import Fleet, RelayPage
from delaytopic_operator.observe.observation import Observation

EDITED: dict[str, Any] = {"schedule": {"maxDelay": "24h"}}


def told(found: Observation) -> int | None:
    """Return what the relays are told, in the ConfigMap that is written."""
    [config] = [
        each.document
        for each in plan(found).actions
        if isinstance(each, Apply) and each.document["kind"] == "ConfigMap" and "relay.yaml" in each.document["data"]
    ]
    found_ms: int | None = yaml.safe_load(config["data"]["relay.yaml"])["schedule"].get("declaredMs")
    return found_ms


def written(found: Observation) -> RouteRecord:
    return next(each.record for each in reversed(plan(found).actions) if isinstance(each, WriteRecord))


def settled(found: Observation) -> Observation:
    """Return what follows when all that was planned is done, and relays with it answer."""
    applied = {each.document["kind"]: each.document for each in plan(found).actions if isinstance(each, Apply)}
    made = {**applied["Deployment"]}
    status = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "observedGeneration": 1}
    made |= {"metadata": {**made["metadata"], "generation": 1}, "status": status}
    pod = {"kind": "Pod", "metadata": {"name": "relay-1", **made["spec"]["template"]["metadata"]}}
    children = [made if each["kind"] == "Deployment" else each for each in applied.values()]
    return replace(found, children=children, fleet=Fleet(made, [pod], fleet(0).pages, 1), record=written(found))


def test_relays_are_told_when_their_rules_were_declared() -> None:
    assert told(look(children=[])) == DECLARED_MS
    assert told(look(living(**EDITED), children=[])) == NOW_MS
    assert told(look(children=[], record=record().model_copy(update={"rules": None}))) == NOW_MS


def test_the_record_says_so_before_relays_are_told() -> None:
    actions = plan(look(living(**EDITED))).actions
    first = next(place for place, each in enumerate(actions) if isinstance(each, WriteRecord))

    assert written(look(living(**EDITED))).rules.declared_ms == NOW_MS  # type: ignore[union-attr]
    assert first < next(place for place, each in enumerate(actions) if isinstance(each, Apply))


def test_nothing_is_written_again_while_the_rules_are_the_same() -> None:
    after = settled(look(living(**EDITED)))
    once = replace(after, record=written(after), now_ms=NOW_MS + 60_000)

    assert [each for each in plan(once).actions if isinstance(each, WriteRecord | Apply)] == []


def test_rules_are_taken_over_once_relays_that_know_them_have_all_partitions() -> None:
    after = settled(look(living(**EDITED)))
    of_before = {"kind": "Pod", "metadata": {"name": "relay-1"}}
    [page] = after.fleet.pages
    assert page.status is not None
    [shard] = page.status.shards
    waits = page.status.model_copy(update={"shards": [shard.model_copy(update={"rules_wait": "another id space"})]})

    def is_taken_over(found: Observation) -> bool:
        rules = written(found).rules if any(isinstance(a, WriteRecord) for a in plan(found).actions) else None
        return bool(rules and rules.taken_over)

    assert is_taken_over(after)
    assert not is_taken_over(look(living(**EDITED)))
    assert not is_taken_over(replace(after, fleet=replace(after.fleet, pods=[of_before])))
    assert not is_taken_over(replace(after, fleet=replace(after.fleet, partitions=2)))
    assert not is_taken_over(replace(after, fleet=replace(after.fleet, pages=[RelayPage("relay-1", waits)])))


def test_an_edit_while_it_drains_is_declared_once() -> None:
    going = seen(document(**EDITED), pending=5)
    first = written(going)
    again = replace(going, record=first, now_ms=NOW_MS + 5_000)

    assert first.rules is not None
    assert first.rules.declared_ms == NOW_MS
    assert not [each for each in plan(again).actions if isinstance(each, WriteRecord)]
