"""Audits of DelayTopics as the operator hears of them: Jobs that serve a verdict until it was kept."""

from __future__ import annotations

import json
from typing import Any

from playground.kube.awaiting import await_condition, await_object
from tests.harness.names import unique
from tests.support.operator.platform import Platform

from delaytopic_audit.model.report import Report
from delaytopic_cli.audit.publishing import status_document
from delaytopic_operator.model.reconciliation import class_key
from delaytopic_operator.resources.identity import audit_name

SERVE = """
import json, sys
from delaytopic_cli.audit.serving import Verdicts, serving
from delaytopic_process.command_line import listen_address
verdicts = Verdicts()
verdicts.put(json.loads(sys.argv[2]))
with serving(listen_address("--serve", sys.argv[1]), verdicts):
    sys.exit(not verdicts.await_kept(60))
"""


def end_audit(platform: Platform, name: str, report: Report) -> dict[str, Any]:
    """Run a Job of the class's CronJob that ends as an audit with this report would; return its `status.slo`.

    It ends well only if the operator says that it has kept the verdict.
    """
    told = status_document(report.model_copy(update={"delay_topic": f"{platform.team}/{name}"}), None)
    template = _cron_job(platform)["spec"]["jobTemplate"]["spec"]["template"]
    container = {
        "name": "audit",
        "image": "audit",
        "command": ["python", "-c", SERVE, "0.0.0.0:8080", json.dumps(told)],
        "ports": [{"name": "http", "containerPort": 8080}],
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    job: dict[str, Any] = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": unique("audit"), "namespace": platform.namespace},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": template["metadata"], "spec": pod},
        },
    }
    jobs = f"/apis/batch/v1/namespaces/{platform.namespace}/jobs"
    platform.client.create(jobs, job)
    await_condition(platform.client, f"{jobs}/{job['metadata']['name']}", "Complete")
    found = platform.client.get(platform.path(name))
    assert found["status"]["slo"]["auditedAt"] == told["slo"]["auditedAt"]
    return dict(found["status"]["slo"])


def _cron_job(platform: Platform) -> dict[str, Any]:
    name = audit_name(class_key(platform.class_name), platform.namespace)
    path = f"/apis/batch/v1/namespaces/{platform.namespace}/cronjobs/{name}"
    found = await_object(platform.client, path, lambda found: found is not None)
    assert found is not None
    return found
