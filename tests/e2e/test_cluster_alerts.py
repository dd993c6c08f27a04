"""The way of an alert on a real cluster: a record is removed from the target, the audit misses it, Prometheus fires."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from playground.kube.pods import pods_of
from playground.next_steps import OPERATOR_PORT
from playground.platform.installation import BOOTSTRAP_SERVERS, INFRASTRUCTURE, OPERATOR_NAMESPACE, delay_class
from playground.platform.installed_platform import OPERATORS, InstalledPlatform
from playground.traffic.plan import Plan
from tests.e2e.support.team import MakeTeam, Team
from tests.support.chart.promtool import prometheus_program
from tests.support.child_process import ChildProcess
from tests.support.servers.prometheus import Prometheus

from delaytopic_local.servers.process import free_port

pytestmark = pytest.mark.e2e

ALERTING, NAME = "alerting", "orders"
RECORDS = 2_000
PER_SECOND = 200
LATENESS_MS = 15_000
"""One that a slow machine seldom exceeds."""
OF_LATENESS = ("DelaySLOFastBurn", "DelaySLOSlowBurn", "DelaySLOBudgetBurn")
"""The alerts that fire besides where it does."""
JUDGED_SECONDS = 420.0
"""For Spark to start beside everything else, and for rounds of a minute until the last record can be judged."""
FIRING_SECONDS = 150.0
"""Recording rules are evaluated once a minute, as they are shipped; an alert on two of them may take two."""
REMOVE_THE_FIRST = """
import sys
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
client = AdminClient({"bootstrap.servers": sys.argv[1]})
for removed in client.delete_records([TopicPartition(sys.argv[2], 0, 1)]).values():
    print(removed.result(60).low_watermark)
"""


def class_document(**audit: str) -> Object:
    """A class of its own: its audit begins when the test says so."""
    document = delay_class()
    return {**document, "metadata": {"name": ALERTING}, "spec": {**document["spec"], "audit": audit}}


@pytest.fixture(scope="module")
def team(platform: InstalledPlatform, make_team: MakeTeam) -> Iterator[Team]:
    """A DelayTopic of that class, which goes again, as classes are everybody's."""
    platform.kubectl.apply([class_document()])
    team = make_team(ALERTING)
    team.apply(NAME, delayClassName=ALERTING, slo={"lateness": f"{LATENESS_MS}ms"})
    team.await_ready(NAME)
    yield team
    platform.kubectl("delete", "delaytopic", "--all", "-n", team.namespace, "--timeout=2m")
    platform.kubectl("delete", "delayclass", ALERTING, "--timeout=1m")


class _Forwarded(ChildProcess):
    """The page of an operator, on a port of this machine."""

    def __init__(self, command: list[str], pod: str, directory: Path) -> None:
        self.port = free_port()
        where = ["port-forward", "-n", OPERATOR_NAMESPACE, pod, f"{self.port}:{OPERATOR_PORT}"]
        self.spawn([*command, *where], directory / f"{pod}.log")


@pytest.fixture
def prometheus(team: Team, kubectl_program: Path, kubeconfig: Path, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that reads the pages of all operators, whoever leads."""
    command = [str(kubectl_program), f"--kubeconfig={kubeconfig}"]
    with ExitStack() as stack:
        ports = []
        for pod in pods_of(team.client, OPERATOR_NAMESPACE, **OPERATORS):
            forwarded = _Forwarded(command, pod["metadata"]["name"], tmp_path)
            stack.callback(forwarded.stop_whatever_happens)
            ports.append(forwarded.port)
        yield stack.enter_context(Prometheus(prometheus_program(), tmp_path, ports))


def test_a_record_that_is_removed_from_the_target_fires_the_alert_on_broken_promises(
    team: Team, prometheus: Prometheus
) -> None:
    # Given records that have all arrived, and the first of a partition that is gone again
    team.send(NAME, Plan(ALERTING, RECORDS, PER_SECOND, delays_ms=(1_000, 5_000))).verdict()
    inside = ("exec", "-n", INFRASTRUCTURE, "kafka-0", "--", "python", "-c", REMOVE_THE_FIRST)
    assert team.platform.kubectl(*inside, BOOTSTRAP_SERVERS, team.target(NAME)).strip() == "1"

    # When the class asks for an audit a minute
    team.platform.kubectl.apply([class_document(schedule="* * * * *")])

    # Then the status says what is missing, and the shipped rules fire
    def has_missed(found: Object | None) -> bool:
        return "missed" in ((found or {}).get("status") or {}).get("slo", {})

    judged = await_object(team.client, team.path(NAME), has_missed, seconds=JUDGED_SECONDS)
    assert judged is not None
    slo = judged["status"]["slo"]
    # A slow machine's late records may be too many, too: that they are late is no broken promise.
    assert (slo["verdict"], set(slo["missed"]) - {"Timely"}) == ("Missed", {"Complete"})
    prometheus.await_firing(team.namespace, {"DelayPromiseBroken": {"Complete"}}, FIRING_SECONDS, OF_LATENESS)
    broken = prometheus.bad_records(team.namespace)
    del broken["Timely"]
    assert broken == {"Complete": 1, "Unique": 0, "NotEarly": 0}
