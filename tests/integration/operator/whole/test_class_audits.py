"""One audit for all DelayTopics of a class: from the class's YAML to the verdict in the status of each, by one pod."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playground.kube.awaiting import await_object
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode, RunningPod
from tests.harness.fixtures import QUICK_START
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform

from delaytopic_operator.resources.identity import class_audit_name
from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

PATIENCE_S = 300
"""For a cold Spark on a busy machine, and a round of a minute."""


class Audited:
    """A platform whose class has all DelayTopics audited together."""

    def __init__(self, platform: Platform, node: LocalNode) -> None:
        self.platform = platform
        self._node = node

    def ask(self, *names: str) -> None:
        """Apply DelayTopics of these names."""
        for name in names:
            self.platform.apply_topic(name, autoscaling={"mode": "Fixed"}, relay={"replicas": 1})

    def await_verdict(self, name: str) -> Object:
        """Wait until the status of a DelayTopic has one."""

        def told(found: Object | None) -> bool:
            return "auditedAt" in ((found or {}).get("status") or {}).get("slo", {})

        found = await_object(self.platform.client, self.platform.path(name), told, seconds=PATIENCE_S)
        assert found is not None
        slo: Object = found["status"]["slo"]
        return slo

    def pods(self) -> list[RunningPod]:
        """Return the pods of audits that the node has run."""
        return self._node.pods(self.platform.namespace, **{"app.kubernetes.io/name": "delaytopic-audit"})


@pytest.fixture(scope="module")
def audited(run_platform: RunPlatform, node: LocalNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    ledger: Path = tmp_path_factory.mktemp("ledger")
    audit = {"schedule": "@yearly", "ledger": ledger.as_uri(), "resources": {"limits": {"memory": "1Gi"}}}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        with run_platform("audited", audit=audit) as platform:
            platform.apply_class(audit={"every": "1m"})
            yield Audited(platform, node)


@pytest.mark.takes_long("starts a Spark, and waits for its second round")
def test_one_pod_audits_all_delay_topics_of_a_class_also_those_that_come_later(audited: Audited) -> None:
    audited.ask("one", "two")
    first = [audited.await_verdict(name) for name in ("one", "two")]
    audited.ask("three")
    later = audited.await_verdict("three")

    (pod,) = audited.pods()
    assert [slo["verdict"] for slo in [*first, later]] == ["Met"] * 3, pod.log_file.read_text(encoding="utf-8")
    cron_jobs = [each["metadata"]["name"] for each in audited.platform.objects("cronjobs", "batch/v1")]
    assert cron_jobs == []


def test_it_goes_with_the_last_delay_topic(audited: Audited) -> None:
    platform = audited.platform
    for name in ("one", "two", "three"):
        platform.delete_topic(name)

    own = class_audit_name(platform.class_name, platform.namespace)
    path = f"/apis/apps/v1/namespaces/{platform.namespace}/deployments/{own}"
    assert wait_until(lambda: platform.client.find(path) is None, timeout_seconds=PATIENCE_S)
    assert not any(own in each["metadata"]["name"] for each in platform.objects("configmaps", "v1"))
