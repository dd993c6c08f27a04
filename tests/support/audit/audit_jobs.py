"""Audits in mode Kubernetes on a real API server, whose pods are processes: the operator's documents, run as Jobs."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playground.kube.control_plane import ControlPlane
from playground.kube.kube_client import Object
from tests.cluster.node.local_node import LocalNode, RunningPod
from tests.harness.names import unique
from tests.support.audit.delay_topics import AuditedTopic
from tests.support.audit.readers import Reader
from tests.support.audit.s3_server import S3Server, s3_options
from tests.support.audit.spark_jars import spark_jars
from tests.support.chart.helm import ChartHelm
from tests.support.operator.routes import Route, route

from delaytopic_operator.model.reconciliation import Key
from delaytopic_process.waiting import wait_until

DRIVER = "audit-driver"
SECRET = "audit-s3"
EXECUTORS = {"spark-role": "executor"}
PATIENCE_S = 600
_MEMORY = {"limits": {"memory": "1Gi"}}


@dataclass
class AuditJobs:
    """A namespace with what the operator and the chart make for the audits of a DelayTopic; their ledger is on S3."""

    plane: ControlPlane
    node: LocalNode
    namespace: str
    topic: AuditedTopic
    s3: S3Server
    executors: int
    secrets: dict[str, str] = field(init=False)
    given: Route = field(init=False)
    place: str = field(init=False)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        self.place = self.s3.url(unique("executors"))
        options = s3_options(self.s3)
        self.secrets = {
            "AWS_ACCESS_KEY_ID": options.pop("fs.s3a.access.key"),
            "AWS_SECRET_ACCESS_KEY": options.pop("fs.s3a.secret.key"),
        }
        audit: dict[str, Any] = {
            "schedule": "@yearly",
            "ledger": self.place,
            "mode": "Kubernetes",
            "driverAccount": DRIVER,
            "executors": {"min": self.executors, "max": self.executors, "resources": _MEMORY},
            "resources": _MEMORY,
            # An address for pods that the loopback has.
            "master": f"k8s://{self.plane.url}",
            "credentialsSecret": SECRET,
            "sparkConf": {f"spark.hadoop.{name}": value for name, value in options.items()},
        }
        spec = self.topic.spec_written() | {"connection": {"bootstrapServers": self.topic.bootstrap_servers}}
        metadata = {"name": self.topic.name, "namespace": self.namespace}
        self.reader = Reader(Key(self.namespace, self.topic.name))
        self.given = route(config={"audit": audit}, metadata=metadata, **spec)

    @property
    def name(self) -> str:
        """Of the DelayTopic, with its namespace."""
        return f"{self.namespace}/{self.topic.name}"

    @property
    def ledger(self) -> str:
        """The ledger of the namespace."""
        return f"{self.place}/namespaces/{self.namespace}"

    def apply(self, helm: ChartHelm) -> None:
        """Apply everything but the CronJob, with the rights that the chart gives the driver."""
        rendered = helm.template(
            "--set", f"operator.audit.driverAccount={DRIVER}", release=self.namespace, namespace=self.namespace
        )
        rights = [each for each in rendered if "audit-driver" in each["metadata"]["name"]]
        data = {name: base64.b64encode(value.encode()).decode() for name, value in self.secrets.items()}
        metadata = {"name": SECRET, "namespace": self.namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        documents = [each for each in self.given.audit() if each["kind"] != "CronJob"]
        self.plane.kubectl.apply([*rights, *documents, secret])

    def start(self) -> str:
        """Create a Job as the CronJob would, and return its name."""
        job = self.given.audit_object("CronJob")["spec"]["jobTemplate"]["spec"] | {"backoffLimit": 0}
        (container,) = job["template"]["spec"]["containers"]
        # The image has the jars, and brokers' clocks are those of real records.
        jars = f"{Path(spark_jars()[0]).parent}/*"
        places = [word for role in ("driver", "executor") for word in ("--conf", f"spark.{role}.extraClassPath={jars}")]
        container["args"] = [*container["args"], *places, "--any-clock", "--window", "24h"]
        name = unique("audit")
        document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job}
        self.plane.client.create(self._path("jobs", "batch/v1"), document)
        return name

    def await_end(self, job: str) -> str:
        """Wait until the Job is over, while its verdict is read and kept, and return its last condition."""
        path = f"{self._path('jobs', 'batch/v1')}/{job}"

        def is_over() -> bool:
            for pod in self.pods(**{"batch.kubernetes.io/job-name": job}):
                self.reader.read(pod)
            return bool(_ended(self.plane.client.find(path)))

        assert wait_until(is_over, timeout_seconds=PATIENCE_S, poll_seconds=0.5), self.log(job)
        return _ended(self.plane.client.find(path))

    def driver(self, job: str) -> RunningPod:
        """Wait for the process of the driver."""
        assert wait_until(lambda: bool(self._drivers(job)), timeout_seconds=60)
        return self._drivers(job)[0]

    def pods(self, **labels: str) -> list[Object]:
        """Return pods as the API server has them."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        return list(self.plane.client.get(self._path("pods"), labelSelector=selector)["items"])

    def running_executors(self) -> list[RunningPod]:
        """Return the processes of executors."""
        return [pod for pod in self.node.pods(self.namespace, **EXECUTORS) if pod.process.is_running()]

    def await_executors(self, count: int) -> None:
        """Wait until so many run, or none."""
        assert wait_until(lambda: len(self.running_executors()) == count, timeout_seconds=PATIENCE_S)

    def log(self, job: str) -> str:
        """Return what the driver has said by now."""
        return self.driver(job).log_file.read_text(encoding="utf-8")

    def await_line(self, job: str, words: str) -> None:
        """Wait until the driver has said so."""
        log: Path = self.driver(job).log_file
        assert wait_until(lambda: words in log.read_text(encoding="utf-8"), timeout_seconds=PATIENCE_S), self.log(job)

    def _drivers(self, job: str) -> list[RunningPod]:
        return self.node.pods(self.namespace, **{"batch.kubernetes.io/job-name": job})

    def _path(self, plural: str, version: str = "v1") -> str:
        return f"/api{'s' if '/' in version else ''}/{version}/namespaces/{self.namespace}/{plural}"


def _ended(job: Object | None) -> str:
    conditions = ((job or {}).get("status") or {}).get("conditions") or []
    return next((each["type"] for each in conditions if each["type"] in ("Complete", "Failed")), "")
