"""The audit of all DelayTopics of a class: from the class's YAML to the verdict in the status of each, by one pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playground.kube.awaiting import await_condition, await_object, condition_of
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode, RunningPod
from tests.harness.fixtures import QUICK_START
from tests.harness.names import unique
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.servers.kafka_topics import KafkaTopics

from delaytopic_operator.model.reconciliation import class_key
from delaytopic_operator.resources.identity import audit_name
from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

PATIENCE_S = 600
"""For a cold Spark on a busy machine."""
GOOD = [f"orders-{number:02}" for number in range(49)]
BLIND = "blind"
"""A DelayTopic that cannot be judged: no broker's clock says when its records arrived."""


class Audited:
    """A platform whose class has all DelayTopics audited together."""

    def __init__(self, platform: Platform, node: LocalNode) -> None:
        self.platform = platform
        self._node = node
        self.cron_job = audit_name(class_key(platform.class_name), platform.namespace)

    def path(self, plural: str, name: str, version: str = "batch/v1") -> str:
        """Return the path of an object where relays run."""
        of = f"/api{'s' if '/' in version else ''}/{version}"
        return f"{of}/namespaces/{self.platform.namespace}/{plural}/{name}"

    def start(self) -> str:
        """Create a Job of the CronJob, once it is about all DelayTopics, and return the Job's path."""
        path = self.path("cronjobs", self.cron_job)
        found = await_object(self.platform.client, path, lambda found: found is not None)
        assert found is not None
        assert wait_until(lambda: self._documents() == len(GOOD) + 1, timeout_seconds=PATIENCE_S)
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": unique("audit")},
            "spec": found["spec"]["jobTemplate"]["spec"],
        }
        self.platform.client.create(self.path("jobs", "").rstrip("/"), job)
        return self.path("jobs", job["metadata"]["name"])

    def verdict(self, name: str) -> tuple[str, str]:
        """Return verdict and reason of SLOMet of a DelayTopic."""
        found: Object = self.platform.client.get(self.platform.path(name))
        return found["status"].get("slo", {}).get("verdict", ""), condition_of(found, "SLOMet").get("reason", "")

    def pods(self) -> list[RunningPod]:
        """Return the pods of audits that the node has run."""
        return self._node.pods(self.platform.namespace, **{"app.kubernetes.io/name": "delaytopic-audit"})

    def _documents(self) -> int:
        maps = self.platform.client.get(self.path("configmaps", "", "v1").rstrip("/"))["items"]
        own = [each for each in maps if each["metadata"]["name"] == f"{self.cron_job}-0"]
        return sum(len(each["data"]) - 1 for each in own)


@pytest.fixture(scope="module")
def audited(run_platform: RunPlatform, node: LocalNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    ledger: Path = tmp_path_factory.mktemp("ledger")
    audit = {"schedule": "@yearly", "ledger": ledger.as_uri(), "resources": {"limits": {"memory": "1Gi"}}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        with run_platform("audited", audit=audit) as platform:
            platform.apply_class(defaults={"partitions": 1, "replicationFactor": 1})
            yield Audited(platform, node)


def applied(platform: Platform, name: str, **spec: Any) -> None:
    """Apply a DelayTopic without relays: an audit has no need of them."""
    platform.apply_topic(name, autoscaling={"mode": "Fixed"}, relay={"replicas": 0}, **spec)


@pytest.mark.takes_long("starts two Sparks, one of which is killed")
def test_one_pod_audits_fifty_delay_topics_though_its_first_try_is_killed_and_one_of_them_cannot_be_judged(
    audited: Audited,
) -> None:
    platform = audited.platform
    for name in GOOD:
        applied(platform, name)
    blind = f"{platform.team}.{BLIND}"
    KafkaTopics(platform.kafka.bootstrap_servers).create(blind, 1, message_timestamp_type="CreateTime")
    applied(platform, BLIND, target={"topic": blind, "management": "Observe"})

    job = audited.start()
    assert wait_until(lambda: bool(audited.pods()), timeout_seconds=PATIENCE_S)
    (first,) = audited.pods()
    assert wait_until(lambda: " sorting " in first.log_file.read_text("utf-8"), timeout_seconds=PATIENCE_S)
    first.process.kill()
    await_condition(platform.client, job, "Complete", seconds=PATIENCE_S)

    verdicts = {name: audited.verdict(name) for name in (*GOOD, BLIND)}
    assert verdicts == dict.fromkeys(GOOD, ("Met", "Met")) | {BLIND: ("CannotJudge", "CannotJudge")}
    cron_jobs = [each["metadata"]["name"] for each in platform.objects("cronjobs", "batch/v1")]
    assert (len(audited.pods()), cron_jobs) == (2, [audited.cron_job])


def test_it_goes_with_the_last_delay_topic(audited: Audited) -> None:
    platform = audited.platform
    for name in (*GOOD, BLIND):
        platform.delete_topic(name)

    path = audited.path("cronjobs", audited.cron_job)
    assert wait_until(lambda: platform.client.find(path) is None, timeout_seconds=PATIENCE_S)
    assert not any(audited.cron_job in each["metadata"]["name"] for each in platform.objects("configmaps", "v1"))
