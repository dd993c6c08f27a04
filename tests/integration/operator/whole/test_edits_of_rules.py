"""The rules of a living DelayTopic are edited while records wait: these keep theirs, arrive once, and it is said.

Delivery is suspended meanwhile, so that records wait however long a rollout takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.integration.operator.whole.test_changes import deployment_path, ready, rolled_out
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import relay_config
from tests.support.operator.platform import Platform
from tests.support.servers.kafka_topics import KafkaTopics

pytestmark = [
    pytest.mark.integration,
    pytest.mark.kubernetes,
    pytest.mark.nightly,
    pytest.mark.takes_long("relays start anew three times"),
]
HOUR_MS = 3_600_000
BACKENDS = ["RedisZset", "KafkaBuckets"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_waits_keeps_its_rules_through_an_edit_of_all_of_them(
    running: Platform, tmp_path: Path, backend: str
) -> None:
    name = f"rules-{backend.lower()}"
    usual: dict[str, Any] = {"backend": {"type": backend}, "autoscaling": {"mode": "Fixed"}}
    source = f"{running.team}.{name}.delayed"
    before = {**usual, "source": {"topic": source, "retention": "800h"}}
    edited = {
        **usual,
        "source": {"topic": source, "retention": "200h"},
        "target": {"topic": f"{running.team}.{name}", "allowedTopics": [f"{running.team}.*"]},
        "schedule": {"maxDelay": "5s", "defaultDelay": "1s", "ids": "Disabled"},
    }
    team = ready(running, name, tmp_path, **before)
    running.await_condition(name, "RulesInForce", reason="InForce")
    rolled_out(running, name, lambda: running.apply_topic(name, **before, suspend="Delivery"))
    due = team.send_due_in(range(20_000, 40_000, 1_000))
    await_pending(running, name, 20)
    declared_ms, generation = told(running, name), running.client.get(deployment_path(running, name))["metadata"]

    # The edit: told once, rolled once, and the source keeps what waits
    rolled_out(running, name, lambda: running.apply_topic(name, **edited, suspend="Delivery"))
    found = running.await_condition(name, "RulesInForce", reason="FormerRulesWait", seconds=60)
    later_ms, after = told(running, name), running.client.get(deployment_path(running, name))["metadata"]
    team.send([(b"late", b"late", [("deliver-after", b"1h")]), (b"implied", b"implied", [])])
    await_pending(running, name, 21)

    assert later_ms > declared_ms
    assert after["generation"] == generation["generation"] + 1
    assert KafkaTopics(running.kafka.bootstrap_servers).config(source)["retention.ms"] == str(800 * HOUR_MS)
    assert f"has retention.ms={800 * HOUR_MS}" in running.condition(name, "TopicsReady")["message"]
    assert {(each["maxDelay"], each["ids"]) for each in found["status"]["formerRules"]} == {("720h", "ByHeader")}
    assert sum(each["records"] for each in found["status"]["formerRules"]) >= 20
    assert (found["status"]["effective"]["maxDelay"], found["status"]["effective"]["defaultDelay"]) == ("5s", "1s")

    # What waits leaves as it was due, what came later by the edited rules, each once
    rolled_out(running, name, lambda: running.apply_topic(name, **edited))
    team.await_delivered(21, seconds=90)
    settled = running.await_condition(name, "RulesInForce", reason="InForce", seconds=60)

    assert told(running, name) == later_ms
    assert "formerRules" not in settled["status"]
    assert values(team) == sorted([*(b"value-%d" % number for number in range(20)), b"implied"])
    assert [letter.value for letter in team.dead_letters()] == [b"late"]
    assert {each.value: each.due_ms for each in team.delivered() if each.value != b"implied"} == {
        b"value-%d" % number: due_ms for number, due_ms in enumerate(due)
    }
    assert [each for each in team.delivered() if each.timestamp_ms < each.due_ms] == []
    running.await_condition(name, "Ready")


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_waits_for_a_fixed_delay_keeps_it_through_an_edit(running: Platform, tmp_path: Path, backend: str) -> None:
    name = f"fixed-{backend.lower()}"
    before: dict[str, Any] = {"backend": {"type": backend}, "autoscaling": {"mode": "Fixed"}}
    edited = before | {"schedule": {"fixedDelay": "1s"}}
    before |= {"schedule": {"fixedDelay": "30s"}}
    team = ready(running, name, tmp_path, **before)
    rolled_out(running, name, lambda: running.apply_topic(name, **before, suspend="Delivery"))
    team.send([(b"key", b"slow-%d" % number, []) for number in range(5)])
    await_pending(running, name, 5)

    rolled_out(running, name, lambda: running.apply_topic(name, **edited, suspend="Delivery"))
    found = running.await_condition(name, "RulesInForce", reason="FormerRulesWait", seconds=60)
    team.send([(b"key", b"fast-%d" % number, []) for number in range(5)])
    rolled_out(running, name, lambda: running.apply_topic(name, **edited))
    team.await_delivered(10, seconds=90)
    running.await_condition(name, "RulesInForce", reason="InForce", seconds=60)

    sent = {record.value: record.timestamp_ms for record in team.read(team.source)}
    waited = {each.value: each.due_ms - sent[each.value] for each in team.delivered()}
    assert {each["fixedDelay"] for each in found["status"]["formerRules"]} == {"30s"}
    assert waited == {b"slow-%d" % n: 30_000 for n in range(5)} | {b"fast-%d" % n: 1_000 for n in range(5)}
    assert len(values(team)) == 10
    assert [each for each in team.delivered() if each.timestamp_ms < each.due_ms] == []


def told(platform: Platform, name: str) -> int:
    """Return the time that relays are told, at which their rules were declared."""
    found = relay_config(platform, name)
    assert found is not None
    return int(yaml.safe_load(found["data"]["relay.yaml"])["schedule"]["declaredMs"])


def values(team: AppTeam) -> list[bytes]:
    return sorted(each.value or b"" for each in team.delivered())


def await_pending(platform: Platform, name: str, pending: int) -> None:
    def holds(found: Object | None) -> bool:
        return bool((found or {}).get("status", {}).get("backlog", {}).get("pending") == pending)

    await_object(platform.client, platform.path(name), holds, seconds=60)
