"""A thousand RecurringRecords of one DelayTopic: each is written once, and an operator that starts anew writes none."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playground.kube.awaiting import condition_of
from tests.cluster.node.local_node import LocalNode
from tests.support.operator.app_team import AppTeam
from tests.support.operator.platform import API, Platform
from tests.support.relay.process import wait_for

from delaytopic_api.records import RESTATED

pytestmark = [
    pytest.mark.integration,
    pytest.mark.kubernetes,
    pytest.mark.nightly,
    pytest.mark.takes_long("a thousand objects are made and looked at twice"),
]
OBJECTS = 1_000
WRITES = {"create", "update", "patch", "delete"}
LOOKS = 'delaytopic_operator_reconcile_total{result="Success"}'


def written(team: AppTeam) -> Counter[bytes | None]:
    """Count what the operator wrote, by value: relays write occurrences beside it."""
    return Counter(record.value for record in team.read(team.source) if RESTATED not in dict(record.headers))


def test_a_thousand_objects_are_written_once_each_and_looked_at_again_without_a_write(
    platform: Platform, node: LocalNode, tmp_path: Path
) -> None:
    platform.start()
    platform.apply_topic("many", schedule={"ids": "ByHeader"})
    platform.await_condition("many", "Ready", seconds=60)
    team = AppTeam.of(platform, "many", tmp_path)
    path = f"{API}/namespaces/{platform.team}/recurringrecords"

    def apply(number: int) -> None:
        spec = {"delayTopic": "many", "cron": f"{number % 60} {number % 24} * * *", "value": f"{number}"}
        platform.apply("RecurringRecord", f"record-{number}", spec, namespace=platform.team)

    def all_are_written() -> bool:
        found = platform.client.get(path)["items"]
        reasons = Counter(condition_of(each, "Ready").get("reason") for each in found)
        return reasons == {"Written": OBJECTS}

    def all_were_looked_at() -> bool:
        return LOOKS in platform.operator.get("/metrics") and platform.operator.metric(LOOKS) > OBJECTS

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(apply, range(OBJECTS)))
    wait_for(all_are_written, platform.operator.why, timeout_s=300)
    values = written(team)
    platform.operator.terminate()
    mark = platform.plane.audit.mark()
    platform.operator.start().wait_until("leader")
    wait_for(all_were_looked_at, platform.operator.why, timeout_s=300)

    calls = platform.plane.audit.calls(mark)
    assert values == {b"%d" % number: 1 for number in range(OBJECTS)}
    assert written(team) == values
    assert [call for call in calls if call.resource.startswith("recurringrecords") and call.verb in WRITES] == []
