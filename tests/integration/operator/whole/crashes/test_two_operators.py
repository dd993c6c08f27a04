"""Of two operators one works; when it dies, hangs or leaves, the other goes on with what was begun."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from playground.kube.request_log import Call
from tests.support.operator.app_team import AppTeam
from tests.support.operator.backlogs import (
    all_arrived,
    await_no_relays,
    await_pending,
    await_record,
    summary,
    with_pending,
)
from tests.support.operator.platform import QUICK, Platform
from tests.support.operator.process import OperatorProcess
from tests.support.relay.process import wait_for

from delaytopic_operator.model.record import RecordState

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

NAME = "reminders"
TOPICS = 10
KILLS = 8
SEED = 4711
CALM = {"poll": "5s", "resync": "60s", "statusInterval": "60s"}
"""Settings under which an operator that has nothing to do writes nothing."""
WRITES = ("create", "update", "patch", "delete", "deletecollection")


class Pair:
    """Two operators of one platform, each a user of its own, so that the audit log tells them apart."""

    def __init__(self, platform: Platform, directory: Path, **settings: object) -> None:
        self.platform = platform
        self._directory = directory
        self._generation = 0
        self._settings = {
            **QUICK,
            "watchNamespaces": [platform.team],
            "relayNamespaces": [],
            "leaseDuration": "15s",
            **settings,
        }
        self.operators = [self._made(name) for name in ("first", "second")]

    def start(self) -> Pair:
        """The first leads, the second stands by."""
        self.platform.apply_class()
        first, second = self.operators
        first.start().wait_until("leader")
        second.start().wait_until("standby")
        self.platform.operator = first
        return self

    def user(self, operator: OperatorProcess) -> str:
        return f"{self.platform.namespace}-{operator.log_file.stem}"

    def writes(self, operator: OperatorProcess, since: int) -> list[Call]:
        """Return its writes, but those of its Lease."""
        calls = self.platform.plane.audit.calls(since, user=self.user(operator))
        return [call for call in calls if call.verb in WRITES and call.resource != "leases"]

    def kill_and_start_another(self, operator: OperatorProcess) -> None:
        """As a Deployment does."""
        operator.kill()
        self._generation += 1
        self.operators.remove(operator)
        self.operators.append(self._made(f"another-{self._generation}").start())

    def _made(self, name: str) -> OperatorProcess:
        plane, namespace = self.platform.plane, self.platform.namespace
        kubeconfig = plane.kubeconfig_for_user(f"{namespace}-{name}", groups=["system:masters"])
        module = "delaytopic_operator"
        return OperatorProcess(self._directory, name, kubeconfig, namespace, self._settings, module)


@pytest.fixture
def make_pair(platform: Platform, tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    pairs: list[Pair] = []

    def make(**settings: object) -> Pair:
        pairs.append(Pair(platform, tmp_path, **settings))
        return pairs[-1]

    yield make
    for pair in pairs:
        for operator in pair.operators:
            operator.stop_whatever_happens()


@pytest.mark.nightly
@pytest.mark.takes_long("a lease runs out, and then a drain waits for its records")
def test_a_standby_ends_what_a_killed_leader_had_begun(
    make_pair: Callable[..., Pair], platform: Platform, tmp_path: Path
) -> None:
    first, second = make_pair(leaseDuration="3s").start().operators
    team = AppTeam.of(platform, NAME, tmp_path)
    platform.apply_topic(NAME)
    with_pending(platform, team, [15_000, 15_500])
    platform.apply_topic("begun")
    platform.delete_topic(NAME)
    await_record(platform, NAME, RecordState.DRAINING)

    first.kill()
    second.wait_until("leader")

    platform.operator = second
    platform.await_condition("begun", "Ready", seconds=60)
    platform.await_gone(NAME, seconds=90)
    assert summary(team.audited(10)) == all_arrived(2)


@pytest.mark.nightly
def test_a_leader_that_was_frozen_writes_nothing_after_it_thaws(
    make_pair: Callable[..., Pair], platform: Platform
) -> None:
    pair = make_pair(**CALM, leaseDuration="5s").start()
    first, second = pair.operators
    platform.apply_topic(NAME)
    platform.await_condition(NAME, "Ready", seconds=60)
    await_pending(platform, NAME, 0)
    mark = platform.plane.audit.mark()

    # While it is at work, so that it has begun something.
    platform.apply_topic("second")
    wait_for(lambda: len(pair.writes(first, mark)) >= 2)
    first.freeze()
    second.wait_until("leader")
    platform.operator = second
    platform.await_condition("second", "Ready", seconds=60)
    thawed = platform.plane.audit.mark()
    first.thaw()
    first.wait_until("standby")
    platform.apply_topic("third")
    platform.await_condition("third", "Ready", seconds=60)

    assert pair.writes(second, thawed)
    assert pair.writes(first, thawed) == []


@pytest.mark.nightly
def test_operators_killed_at_random_end_with_everything_as_it_was_asked_for(
    make_pair: Callable[..., Pair], platform: Platform, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    pair = make_pair(leaseDuration="3s", resync="10s").start()
    names = [f"t{number}" for number in range(TOPICS)]
    teams = {name: AppTeam.of(platform, name, tmp_path) for name in names}
    kills = 0

    def kill_now_and_then(do: Callable[[str], object]) -> None:
        nonlocal kills
        for name in names:
            do(name)
            if kills < KILLS and chance.random() < 0.4:
                leader = led_by(pair)
                pass_by(chance.random())
                pair.kill_and_start_another(leader)
                kills += 1

    kill_now_and_then(lambda name: platform.apply_topic(name, **one_partition(platform, name)))
    for name in names:
        platform.await_condition(name, "Ready", seconds=120)
        teams[name].send_due_in([1_000, 90_000])
    kill_now_and_then(lambda name: platform.apply_topic(name, **one_partition(platform, name), precision="2s"))
    for name in names:
        await_object(platform.client, platform.path(name), has_new_precision)
        platform.await_condition(name, "Ready", seconds=120)
    kill_now_and_then(platform.delete_topic)
    for name in names:
        platform.await_gone(name, seconds=180)

    platform.operator = led_by(pair)
    await_no_relays(platform)
    verdicts = {name: summary(teams[name].audited(5)) for name in names}
    with capsys.disabled():
        print(f"\n{kills} kills (seed {SEED}), {TOPICS} DelayTopics: {verdicts}")
    assert verdicts == dict.fromkeys(names, all_arrived(2))
    assert kills >= 5


def has_new_precision(found: Object | None) -> bool:
    return bool((found or {}).get("status", {}).get("effective", {}).get("precision") == "2s")


def pass_by(seconds: float) -> None:
    """Time, in which something may happen."""
    until = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > until)


def led_by(pair: Pair) -> OperatorProcess:
    """The operator that leads, once one does."""
    found = wait_for(lambda: [operator for operator in pair.operators if operator.leads()])
    leader: OperatorProcess = found[0]
    return leader


def one_partition(platform: Platform, name: str) -> dict[str, Any]:
    source = f"{platform.team}.{name}.delayed"
    return {
        "source": {"topic": source, "partitions": 1},
        "target": {"topic": f"{platform.team}.{name}", "partitions": 1},
        "deadLetter": {"topic": f"{source}.dlq", "partitions": 1},
    }
