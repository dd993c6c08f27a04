"""Minutes of attacks by one team, with all that its Role allows and by its records, change nothing for another."""

from __future__ import annotations

import json
import time

import pytest
from playground.platform.installation import BOOTSTRAP_SERVERS, OPERATOR_NAMESPACE, RELAY_NAMESPACE
from playground.traffic.hostile import Assault
from playground.traffic.plan import Plan
from tests.e2e.support.attacks import attacking_documents, forged_pod
from tests.e2e.support.storm import is_running
from tests.e2e.support.team import MakeTeam, Team

from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import record_name

pytestmark = pytest.mark.e2e

SECONDS = 300
PER_SECOND = 1_000
PRECISION_MS = 5_000
"""The precision that two cores allow that also run the cluster, three brokers and both sides of the attack."""


@pytest.fixture(scope="module")
def blue(make_team: MakeTeam) -> Team:
    """The team that is attacked."""
    team = make_team("blue")
    team.apply("steady", precision=f"{PRECISION_MS}ms")
    return team


@pytest.fixture(scope="module")
def red(make_team: MakeTeam) -> Team:
    """The team that attacks; its developers have the cluster's role edit in its namespace."""
    team = make_team("red")
    team.apply("armed")
    team.let_developers_in()
    return team


def attack_once(red: Team, blue: Team, round_number: int) -> None:
    """Apply everything as a developer of the attacking team, then delete it with confirmation."""
    record = blue.client.get(
        f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps/{record_name(Key(blue.namespace, 'steady'))}"
    )
    relay = next(pod for pod in blue.platform.relays(blue.namespace, "steady") if is_running(pod))
    documents = [
        *attacking_documents(red.namespace, blue.topic("steady"), record, BOOTSTRAP_SERVERS, round_number),
        forged_pod(relay, red.namespace),
    ]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    red.as_developer("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)
    red.as_developer("delete", "--wait=false", "--ignore-not-found", "-f", "-", given=given)


def test_minutes_of_attacks_lose_double_and_delay_nothing_of_another_team(red: Team, blue: Team) -> None:
    blue.await_ready("steady")
    red.await_ready("armed")
    topics = blue.topic("steady")["status"]
    victims = (blue.source("steady"), blue.target("steady"), "__consumer_offsets")
    assault = Assault(SECONDS, 200, victims)

    traffic = blue.start_sending("steady", Plan("steady", SECONDS * PER_SECOND, per_second=PER_SECOND))
    hostile = red.start_pod("hostile", red.source("armed"), assault.encode())
    until_s = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < until_s:
        attack_once(red, blue, rounds)
        rounds += 1
    verdict, sent = traffic.verdict(patience_s=120), hostile.message(120)
    restarts = [
        status["restartCount"]
        for pod in blue.platform.relays(blue.namespace, "steady") + red.platform.relays(red.namespace, "armed")
        for status in pod["status"]["containerStatuses"]
    ]

    print(json.dumps({"rounds": rounds, "sent": sent, "verdict": verdict, "restarts": restarts}))
    assert (verdict["arrived"], rounds > 5, sent["records"] > 1_000) == (SECONDS * PER_SECOND, True, True), verdict
    assert verdict["late_ms"]["p99"] < PRECISION_MS, verdict
    assert set(restarts) == {0}, restarts
    assert [blue.topic("steady")["status"][part]["topicId"] for part in ("source", "target")] == [
        topics[part]["topicId"] for part in ("source", "target")
    ]
    made = blue.client.get(f"/api/v1/namespaces/{RELAY_NAMESPACE}/configmaps")["items"]
    labels = [each["metadata"].get("labels", {}) for each in made]
    of_red = {each["delaytopic.dev/name"] for each in labels if each.get("delaytopic.dev/namespace") == red.namespace}
    assert of_red == {"armed"}
