"""Tests of when rules are declared, when relays are known to read by them, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from tests.support.operator.scenes import DECLARED_MS, NOW_MS, altered, document, fleet, record, seen
from tests.unit.operator.decide.test_planner import living, look

from delaytopic_api.relay import FormerRules
from delaytopic_api.values import Dialect, Ids
from delaytopic_operator.decide.plan import Apply, WriteRecord
from delaytopic_operator.decide.planner import DRY_RUN, plan
from delaytopic_operator.model.conditions import summed_up
from delaytopic_operator.model.record import RouteRecord
from delaytopic_operator.observe.fleet import FleetFacts, RelayPage
from delaytopic_operator.observe.observation import Observation
from delaytopic_operator.rules.validate import Refusal

DAY_MS = 24 * 3_600_000
FORMER = FormerRules(
    dialect=Dialect.NATIVE,
    max_delay_ms=720 * 3_600_000,
    ids=Ids.BY_HEADER,
    declared_ms=DECLARED_MS,
    last_due_ms=NOW_MS + DAY_MS,
    records=1_200,
)
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
    objects = [made if each["kind"] == "Deployment" else each for each in applied.values()]
    return altered(found, objects=objects, fleet=FleetFacts(made, [pod], fleet(0).pages, 1), record=written(found))


def test_relays_are_told_when_their_rules_were_declared() -> None:
    assert told(look(objects=[])) == DECLARED_MS
    assert told(look(living(**EDITED), objects=[])) == NOW_MS
    assert told(look(objects=[], record=record().model_copy(update={"rules": None}))) == NOW_MS


def test_the_record_says_so_before_relays_are_told() -> None:
    actions = plan(look(living(**EDITED))).actions
    first = next(place for place, each in enumerate(actions) if isinstance(each, WriteRecord))

    assert written(look(living(**EDITED))).rules.declared_ms == NOW_MS  # type: ignore[union-attr]
    assert first < next(place for place, each in enumerate(actions) if isinstance(each, Apply))


def test_nothing_is_written_again_while_the_rules_are_the_same() -> None:
    after = settled(look(living(**EDITED)))
    once = altered(after, record=written(after), now_ms=NOW_MS + 60_000)

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
    again = altered(going, record=first, now_ms=NOW_MS + 5_000)

    assert first.rules is not None
    assert first.rules.declared_ms == NOW_MS
    assert not [each for each in plan(again).actions if isinstance(each, WriteRecord)]


# -- what is said


def known(found: Observation, *former: FormerRules, waits: str | None = None, partitions: int = 1) -> Observation:
    """Return it with relays that know these rules of before."""
    [page] = fleet(0).pages
    assert page.status is not None
    [shard] = page.status.shards
    said = {"former_rules": list(former), "rules_wait": waits}
    shards = [shard.model_copy(update={"partition": number, **said}) for number in range(partitions)]
    status = page.status.model_copy(update={"shards": shards})
    return replace(found, fleet=replace(found.fleet, pages=[RelayPage("relay-1", status)], partitions=partitions))


def condition(found: Observation) -> tuple[str, str, str]:
    [said] = [each for each in plan(found).conditions if each.type == "RulesInForce"]
    return said.status, said.reason, said.message


def test_rules_are_in_force_while_nothing_keeps_others() -> None:
    assert condition(look()) == ("True", "InForce", "all that waits was read by the rules of now")
    assert "formerRules" not in plan(look()).parts


def test_until_relays_have_rolled_it_is_said_what_the_edit_does() -> None:
    edited = look(living(**EDITED), pending=None)
    first = look(record=record().model_copy(update={"rules": None}))

    assert condition(edited) == (
        "False",
        "RollingOut",
        "what is produced before all relays have started anew is read by the rules of before: what waits keeps "
        "maxDelay 720h (an unknown number of records, the last due by 2026-12-21T14:01:26Z); what is produced from now "
        "on gets maxDelay 24h",
    )
    assert condition(first)[:2] == ("Unknown", "RollingOut")


def test_a_refused_edit_leaves_the_rules_that_relays_have() -> None:
    refused = look(living(**EDITED), verdict=Refusal("SourceNotAllowed", "no"))

    assert condition(refused)[:2] == ("True", "InForce")


def test_what_drains_keeps_its_rules() -> None:
    going = known(seen(document(), pending=5), FORMER)

    assert condition(going)[:2] == ("True", "FormerRulesWait")


@pytest.mark.parametrize(("counted", "said"), [(7, "up to 7 records"), (None, "up to 1,200 records")])
def test_a_dry_run_says_it_before_it_is_done_and_counts_by_the_status_where_relays_do_not_answer(
    counted: int | None, said: str
) -> None:
    asked = living(annotations={DRY_RUN: "true"}, **EDITED)
    asked["status"] = {"backlog": {"pending": 1_200}}

    told = condition(look(asked, pending=counted))[2]

    assert f"what waits keeps maxDelay 720h ({said}, the last due by" in told


def test_what_keeps_former_rules_is_counted_over_all_partitions() -> None:
    after = known(settled(look(living(**EDITED))), FORMER, partitions=3)

    assert condition(after) == (
        "True",
        "FormerRulesWait",
        "3,600 records keep maxDelay 720h, the last is due at 2026-11-22T14:01:26Z. What is produced from now on gets "
        "maxDelay 24h",
    )
    assert plan(after).parts["formerRules"] == [
        {
            "dialect": "Native",
            "maxDelay": "720h",
            "ids": "ByHeader",
            "allowedTopics": [],
            "declaredAt": "2026-11-21T13:01:26Z",
            "records": 3_600,
            "partitions": 3,
            "lastDue": "2026-11-22T14:01:26Z",
        }
    ]
    assert said_of(after)["Ready"] == said_of(known(settled(look(living(**EDITED)))))["Ready"]


def said_of(found: Observation) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in summed_up(plan(found).conditions, plan(found).progress)}


def test_rules_of_different_edits_are_told_apart_the_oldest_first() -> None:
    later = FORMER.model_copy(
        update={"declared_ms": DECLARED_MS + 1, "max_delay_ms": DAY_MS, "fixed_delay_ms": DAY_MS, "records": 1}
    )

    after = known(settled(look(living(**EDITED))), later, FORMER)

    assert [each["maxDelay"] for each in plan(after).parts["formerRules"]] == ["720h", "24h"]
    assert condition(after)[2] == (
        "1,200 records keep maxDelay 720h, the last is due at 2026-11-22T14:01:26Z; 1 record keeps fixedDelay 24h, the "
        "last is due at 2026-11-22T14:01:26Z. What is produced from now on gets maxDelay 24h, no fixedDelay"
    )


def test_an_edit_that_waits_says_why_and_until_when() -> None:
    edited = look(living(schedule={"kaspr": {}, "maxDelay": "720h"}))
    waits = known(settled(edited), waits="the ids are others")

    assert "The edit waits until nothing waits any more" in condition(edited)[2]
    assert condition(waits) == (
        "False",
        "EditWaits",
        "1 source partitions (the first: 0) are read by the rules of before the edit: the ids are others. What was "
        "produced before the edit is due by 2026-12-21T14:01:26Z",
    )


def test_what_was_said_stays_while_not_all_relays_answer() -> None:
    before = {"type": "RulesInForce", "status": "True", "reason": "FormerRulesWait", "message": "1,200 records"}
    former = plan(known(look(), FORMER)).parts["formerRules"]
    found = living()
    found["status"] = {"conditions": [before], "formerRules": former}

    away = look(found, fleet=fleet(None))

    assert condition(away) == ("True", "FormerRulesWait", "1,200 records")
    assert plan(away).parts["formerRules"] == former


def test_pages_that_no_relay_writes_make_no_status_that_the_api_server_refuses() -> None:
    endless = FORMER.model_copy(
        update={"max_delay_ms": -5, "records": 2**63 - 1, "allowed_topics": ["x" * 9_999] * 99, "declared_ms": 0}
    )

    [status] = plan(known(look(), *[endless] * 99)).parts["formerRules"]

    assert (status["records"], status["maxDelay"], len(status["allowedTopics"])) == (2**53, "-5 ms", 16)
