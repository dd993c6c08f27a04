"""Audits of a DelayTopic as the operator hears of them: Jobs that end with the message that the command writes."""

from __future__ import annotations

import json
from typing import Any

from playground.kube.awaiting import await_condition, await_object
from tests.harness.names import unique
from tests.support.operator.platform import Platform

from delaytopic_audit.model.report import Report
from delaytopic_cli.audit.publishing import status_document, status_text

FOLDER = "/run/audit"
WRITE = "import sys; open(sys.argv[1], 'w', encoding='utf-8').write(sys.argv[2])"


def end_audit(platform: Platform, name: str, report: Report) -> dict[str, Any]:
    """Run a Job of the DelayTopic's CronJob that ends as an audit with this report would; return its `status.slo`."""
    text = status_text(status_document(report.model_copy(update={"delay_topic": f"{platform.team}/{name}"}), None))
    cron_job = _cron_job(platform, name)
    template = cron_job["spec"]["jobTemplate"]["spec"]["template"]
    file = f"{FOLDER}/termination-log"
    container = {
        "name": "audit",
        "image": "audit",
        "command": ["python", "-c", WRITE, file, text],
        "terminationMessagePath": file,
        "volumeMounts": [{"name": "audit", "mountPath": FOLDER}],
    }
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": [{"name": "audit", "emptyDir": {}}]}
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
    audited_at = json.loads(text)["slo"]["auditedAt"]
    found = await_object(
        platform.client,
        platform.path(name),
        lambda found: bool(found and found["status"].get("slo", {}).get("auditedAt") == audited_at),
    )
    assert found is not None
    return dict(found["status"]["slo"])


def _cron_job(platform: Platform, name: str) -> dict[str, Any]:
    def there(_: object) -> bool:
        return bool(platform.objects("cronjobs", "batch/v1", name))

    await_object(platform.client, platform.path(name), there)
    [found] = platform.objects("cronjobs", "batch/v1", name)
    return found
