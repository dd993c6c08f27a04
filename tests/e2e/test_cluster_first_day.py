"""The first day with delaytopic on a real cluster: chart, class, three lines of YAML, records, a tour, an audit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from playground.cluster.clusters import Cluster
from playground.platform.installation import OPERATOR_NAMESPACE
from playground.platform.installed_platform import InstalledPlatform
from playground.platform.moments import await_audit_of, now_ms
from playground.tour.page import recorded
from playground.tour.stage import PAGE, clear, leave, shell
from playground.traffic.plan import Plan
from tests.e2e.support.storm import kill
from tests.e2e.support.team import MakeTeam, Sending, Team

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

THREE_LINES = """
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata: {{name: reminders, namespace: {namespace}}}
spec:
  source: {{topic: {namespace}.reminders.delayed}}
  target: {{topic: {namespace}.reminders}}
"""
RECORDS = 1_000
TAKEOVER_MS = 20_000
LATENESS_MS = 5_000
"""The SLO of a DelayTopic that names none."""


@pytest.fixture(scope="module")
def team(make_team: MakeTeam) -> Team:
    """One whose DelayTopic is ready."""
    team = make_team("shop")
    kubectl = team.platform.kubectl
    kubectl("apply", "-f", "-", given=THREE_LINES.format(namespace=team.namespace))
    kubectl("wait", "-n", team.namespace, "--for=condition=Ready", "delaytopic/reminders", "--timeout=110s")
    return team


@pytest.fixture(scope="module")
def sent(team: Team) -> Sending:
    """Records that were sent, some of them withdrawn again."""
    return team.send("reminders", Plan("first", RECORDS, per_second=50, delays_ms=(3_000, 15_000), cancel_every=20))


def test_records_of_a_delay_topic_of_three_lines_arrive_on_time_exactly_once(sent: Sending) -> None:
    verdict = sent.verdict()

    counts = {name: verdict[name] for name in ("records", "arrived", "withdrawn")}
    assert counts == {"records": RECORDS, "arrived": RECORDS * 19 // 20, "withdrawn": RECORDS // 20}
    assert verdict["late_ms"]["p99"] < LATENESS_MS, verdict


def test_helm_test_sees_a_record_arrive_once_and_not_early(platform: InstalledPlatform, team: Team) -> None:
    """With a DelayTopic for it alone: the audit counts the records of the other."""
    team.apply("trial")
    team.await_ready("trial")

    printed = platform.run_helm_test(team.source("trial"), team.target("trial"))

    assert f"arrived once on {team.target('trial')}, not early" in printed


def test_the_commands_of_the_tour_print_what_its_page_says(
    platform: InstalledPlatform, kubeconfig: Path, kubectl_program: Path, tmp_path: Path
) -> None:
    """It takes as long as records of the other tests have to settle until they can be audited."""
    page = PAGE.read_text(encoding="utf-8")
    clear(platform.kubectl)

    printed = recorded(page, shell(kubeconfig, [Path(sys.executable).parent, kubectl_program.parent], tmp_path))
    leave(platform.kubectl)

    assert printed == page, "run make tour, and look at what it changes"


def test_a_standby_takes_over_within_twenty_seconds_of_the_leaders_death(
    cluster: Cluster, platform: InstalledPlatform, team: Team
) -> None:
    leader = platform.await_leader()
    pod = platform.client.get(f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods/{leader}")

    killed_ms = now_ms()
    kill(platform.client, cluster, pod)
    platform.await_leader(besides=leader)
    took_ms = now_ms() - killed_ms
    team.apply("after-the-death")
    team.await_ready("after-the-death")

    assert took_ms < TAKEOVER_MS


def test_the_audit_proves_it_and_the_delay_topic_says_so(
    platform: InstalledPlatform, team: Team, sent: Sending
) -> None:
    await_audit_of(sent.last_due_ms, lateness_ms=LATENESS_MS)

    condition = platform.audit(team.namespace, "reminders", "first")
    slo: dict[str, Any] = team.topic("reminders")["status"]["slo"]

    everything = f"{RECORDS:,} records: every one arrived or is accounted for, once, and on time as agreed."
    everything += " 100% on time, of 99.9%; error budget left: 100%."
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", "Met", everything)
    assert slo["attainmentPercent"] == "100%"
