"""The audit in mode Kubernetes: its pod asks a real API server for executors, which are processes of this machine.

A node of processes shows no image, no security context at work, no network between pods and no token that is a file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playground.kube.control_plane import ControlPlane
from pyspark.sql import SparkSession
from tests.cluster.fixtures import MakeNamespace
from tests.cluster.node.local_node import LocalNode
from tests.harness.fixtures import QUICK_START
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.audit.audit_jobs import DRIVER, EXECUTORS, SECRET, AuditJobs
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.audit.known_findings import Tables, assert_truth_found, produced, tables_of
from tests.support.audit.s3_server import S3Server
from tests.support.audit.truth import Truth
from tests.support.chart.helm import ChartHelm
from tests.unit.operator.resources.pod_security import violations

from delaytopic_operator.observe.audit_verdict import last_verdict

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
TWO = 2


@pytest.fixture(scope="module")
def truths(kafka: KafkaAddress, tmp_path_factory: pytest.TempPathFactory) -> tuple[AuditedTopic, list[Truth]]:
    topic = AuditedTopic(unique("pods"), kafka.bootstrap_servers, tmp_path_factory.mktemp("local") / "ledger")
    return topic, produced(topic)


@pytest.fixture(scope="module")
def local(spark: SparkSession, truths: tuple[AuditedTopic, list[Truth]]) -> Tables:
    """The tables of an audit in one process."""
    topic, expected = truths
    topic.run(spark, time.time_ns() // 1_000_000)
    found = tables_of(spark, str(topic.folder))
    assert_truth_found(found, expected)
    return found


@pytest.fixture
def jobs(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    node: LocalNode,
    make_namespace: MakeNamespace,
    helm_program: Path,
    s3: S3Server,
    truths: tuple[AuditedTopic, list[Truth]],
    tmp_path: Path,
) -> Iterator[AuditJobs]:
    namespace = make_namespace("executors", labels=RESTRICTED, pods=True)
    made = AuditJobs(control_plane, node, namespace, truths[0], s3, executors=getattr(request, "param", TWO))
    made.apply(ChartHelm(helm_program, tmp_path))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JDK_JAVA_OPTIONS", " ".join(QUICK_START))
        yield made
    control_plane.kubectl("delete", f"ClusterRole/{namespace}:{namespace}-delaytopic:audit-driver")


def assert_rights_suffice(jobs: AuditJobs, mark: int) -> None:
    """Fail if the driver asked for anything but pods, or was refused anything."""
    calls = jobs.plane.audit.calls(mark, user=f"system:serviceaccount:{jobs.namespace}:{DRIVER}")
    assert {call.resource for call in calls if call.namespace} == {"pods"}
    assert [call for call in calls if call.code in (401, 403)] == []


@pytest.mark.takes_long("starts a Spark of three pods")
def test_executors_are_pods_like_the_driver_and_find_the_same_with_no_right_but_on_pods(
    jobs: AuditJobs, spark: SparkSession, local: Tables
) -> None:
    mark = jobs.plane.audit.mark()

    job = jobs.start()
    jobs.await_executors(TWO)
    executors, everything = jobs.pods(**EXECUTORS), jobs.pods()
    end = jobs.await_end(job)

    assert (end, tables_of(spark, jobs.ledger)) == ("Complete", local), jobs.log(job)
    (driver,) = jobs.pods(**{"batch.kubernetes.io/job-name": job})
    for pod in executors:
        (container,) = pod["spec"]["containers"]
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Pod", driver["metadata"]["uid"])
        assert violations(pod["spec"]) == []
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert pod["spec"]["serviceAccountName"] == jobs.given.audit_object("ServiceAccount")["metadata"]["name"]
        assert container["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
        assert container["envFrom"] == [{"secretRef": {"name": SECRET}}]
        assert container["image"] == driver["spec"]["containers"][0]["image"]
        assert [each["name"] for each in pod["spec"]["volumes"]] == ["spark-local-dir-tmp"]
    assert [name for name, value in jobs.secrets.items() if value in json.dumps(everything)] == []
    assert_rights_suffice(jobs, mark)
    jobs.await_executors(0)
    assert jobs.pods(**EXECUTORS) == []


@pytest.mark.takes_long("starts a Spark of three pods")
@pytest.mark.parametrize("moment", ["sorting", "joining"])
def test_an_executor_that_is_killed_changes_no_table(
    jobs: AuditJobs, spark: SparkSession, local: Tables, moment: str
) -> None:
    mark = jobs.plane.audit.mark()
    job = jobs.start()
    jobs.await_executors(TWO)
    jobs.await_line(job, f" {moment} ")
    victim, *_ = jobs.running_executors()

    victim.process.kill()

    assert jobs.await_end(job) == "Complete", jobs.log(job)
    assert tables_of(spark, jobs.ledger) == local
    assert_rights_suffice(jobs, mark)


@pytest.mark.takes_long("starts two Sparks of two pods")
@pytest.mark.parametrize("jobs", [1], indirect=True, ids=["of an executor"])
def test_of_two_audits_at_once_one_counts(jobs: AuditJobs, spark: SparkSession, local: Tables) -> None:
    both = [jobs.start(), jobs.start()]

    ends = sorted(jobs.await_end(job) for job in both)

    # The slower one was overtaken, or began when the other was through.
    assert ends in (["Complete", "Complete"], ["Complete", "Failed"])
    logs = "".join(map(jobs.log, both))
    assert ("was quicker" in logs) == (ends[-1] == "Failed"), logs
    assert tables_of(spark, jobs.ledger) == local
    jobs.await_executors(0)


@pytest.mark.takes_long("starts a Spark")
def test_a_driver_whose_account_is_not_bound_fails_and_says_so_to_the_operator(jobs: AuditJobs) -> None:
    binding = f"{jobs.namespace}:{jobs.namespace}-delaytopic:audit-driver"
    jobs.plane.kubectl("delete", "rolebinding", binding, "--namespace", jobs.namespace)

    job = jobs.start()

    assert jobs.await_end(job) == "Failed"
    verdict = last_verdict({}, 0, jobs.reader.message)
    assert verdict is not None
    told = verdict.condition
    assert (told.status, told.reason) == ("Unknown", "CannotJudge")
    assert f'User "system:serviceaccount:{jobs.namespace}:{DRIVER}" cannot get resource "pods"' in told.message


@pytest.mark.takes_long("starts a Spark of three pods")
@pytest.mark.parametrize("is_asked", [False, True], ids=["killed", "asked to end"])
def test_no_executor_outlives_its_driver(jobs: AuditJobs, is_asked: bool) -> None:
    job = jobs.start()
    jobs.await_executors(TWO)
    process = jobs.driver(job).process

    if is_asked:
        process.ask_to_stop()
    else:
        process.kill()

    jobs.await_executors(0)
    assert jobs.await_end(job) == "Failed"
