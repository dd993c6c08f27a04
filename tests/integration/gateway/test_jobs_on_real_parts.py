"""Jobs on a real Kafka with real relays, and a gateway that is killed: each record gets its command once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.harness.names import unique
from tests.support.gateway.gateway_process import GatewayProcess, Settings
from tests.support.relay.process import RelayProcess, wait_for
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute, Sent, at, now_ms, produce
from tests.support.relay.route import PARTITIONS, Route
from tests.support.relay.routes import STEADY

from delaytopic_cli.__main__ import run

pytestmark = [pytest.mark.integration, pytest.mark.takes_long("a gateway starts three times, beside Kafka and a relay")]

HOUR_MS = 3_600_000
RECORDS = 2_000
GROUPS = (b"go", b"drop", b"later", b"stay")
NAMES = [b"%s-%d" % (GROUPS[number % len(GROUPS)], number) for number in range(RECORDS)]


def gateway_of(route: Route, relay: RelayProcess, directory: Path) -> GatewayProcess:
    settings = Settings(
        route.config().namespace,
        route.name,
        route.source,
        route.target,
        route.dead_letter,
        route.config().schedule.max_delay.ms,
        route.servers.bootstrap_servers,
        unique("jobs"),
        [f"http://127.0.0.1:{relay.port()}"],
    )
    return GatewayProcess(settings, directory)


def carried_out(gateway: GatewayProcess, document: dict[str, Any], *, killed: bool) -> dict[str, Any]:
    """Ask for a job, and return what it says when it is over; the gateway is killed when it has begun."""
    status, job = gateway.ask("POST", "/jobs", document)
    assert status == 202, job
    if killed:
        wait_for(lambda: gateway.job(job["id"])["batches"], gateway.why)
        gateway.kill()
        gateway.start()
    # Its first look at the topic may be under way.
    wait_for(lambda: gateway.ask("GET", f"/jobs/{job['id']}")[0] == 200, gateway.why)
    found: dict[str, Any] = wait_for(lambda: (each := gateway.job(job["id"]))["endedMs"] and each, gateway.why)
    return found


def by_command(gateway: GatewayProcess, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Return what `delaytopic jobs start` prints."""
    name = gateway.base.removeprefix("/v1/delaytopics/")
    assert run(["jobs", "start", name, *arguments, "--gateway", gateway.url]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def waiting(gateway: GatewayProcess) -> int:
    return len(gateway.ask("GET", "/records?limit=10000")[1]["records"])


def counts(job: dict[str, Any]) -> tuple[str, int, int, int, dict[str, int]]:
    return job["state"], job["expected"], job["matched"], job["written"], job["skipped"]


@BUCKETS_NIGHTLY
def test_each_record_gets_its_command_once_though_the_gateway_is_killed(
    make_route: MakeRoute, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given records of four kinds that wait for an hour
    route = make_route(schedule={"maxDelay": "12h"}, limits=STEADY)
    relay = route.start_relay().wait_until_delivering(PARTITIONS)
    due_ms = now_ms() + HOUR_MS
    sent = [
        Sent(b"k%d" % number, name, [at(due_ms + number), ("deliver-id", name)]) for number, name in enumerate(NAMES)
    ]
    produce(route.servers.bootstrap_servers, route.source, sent)
    gateway = gateway_of(route, relay, tmp_path).start()
    try:
        # When some are cancelled, some moved, and then all that are left released
        each = RECORDS // len(GROUPS)
        dry = by_command(gateway, capsys, "cancel", "--id-prefix", "drop-", "--dry-run")
        jobs = [
            carried_out(gateway, {"id": name, **document}, killed=name != "releases")
            for name, document in {
                "cancels": {"action": "Cancel", "selector": {"idPrefix": "drop-"}},
                "moves": {"action": "Move", "moveBy": "2h", "selector": {"idPrefix": "later-"}},
                "releases": {"action": "Release", "selector": {"dueBefore": due_ms + HOUR_MS}},
            }.items()
        ]
        wait_for(lambda: waiting(gateway) == each, relay.why)
        last = by_command(gateway, capsys, "release", "--all", "--yes", "--follow")
        wait_for(lambda: waiting(gateway) == 0, relay.why)
    finally:
        gateway.stop_whatever_happens()

    # Then the counts are exact, and each record that was not cancelled was delivered once
    assert dry == {"matched": each, "complete": True}
    assert [counts(job) for job in (*jobs, last)] == [
        ("Done", each, each, each, {}),
        ("Done", each, each, each, {}),
        ("Done", 2 * each, 2 * each, 2 * each, {}),
        ("Done", each, each, each, {}),
    ]
    delivered = Counter(record.value for record in route.read(route.target))
    assert delivered == Counter(name for name in NAMES if not name.startswith(b"drop"))
    assert route.read(route.dead_letter) == []
