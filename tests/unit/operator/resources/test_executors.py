"""Audits in mode Kubernetes: the driver's pod and the template of its executors."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.support.operator.routes import Route, route
from tests.unit.operator.resources.pod_security import violations

from delaytopic_api.documents import AuditTemplate
from delaytopic_api.errors import InvalidDocument
from delaytopic_api.loading import validate
from delaytopic_audit.runtime import executor_pods
from delaytopic_operator.config import AuditConfig
from delaytopic_operator.resources.audits.executors import audit_of_class
from delaytopic_operator.resources.identity import Document

URL = {"schedule": "0 * * * *", "ledger": "s3a://audits/ledger"}
KUBERNETES = {**URL, "mode": "Kubernetes", "driverAccount": "driver"}
VOLUME = {"persistentVolumeClaim": {"claimName": "audits"}}
CREDENTIALS = {"type": "ScramSha512", "username": "u", "passwordSecret": {"secretName": "scram"}}
CONNECTION = {"bootstrapServers": "kafka:9092", "authentication": CREDENTIALS}


def audited(audit: dict[str, Any], **given: Any) -> Route:
    return route(config={"audit": audit, "images": {"pullSecrets": ["registry"]}}, **given)


def driver_of(given: Route) -> Document:
    return dict(given.audit_object("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"])


def name_of(given: Route) -> str:
    return str(given.audit_object("CronJob")["metadata"]["name"])


def executor_of(given: Route) -> Document:
    return dict(yaml.safe_load(given.audit_object("ConfigMap")["data"]["executor.yaml"]))


def arguments(given: Route) -> dict[str, str]:
    words = driver_of(given)["containers"][0]["args"]
    return {word: words[place + 1] for place, word in enumerate(words[:-1]) if word.startswith("--")}


def of_class(audit: dict[str, Any], **template: Any) -> AuditConfig:
    return audit_of_class(validate(AuditConfig, audit), validate(AuditTemplate, template))


def test_the_template_of_executors_is_a_restricted_pod_with_the_drivers_secrets_and_no_token() -> None:
    resources = {"requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}
    audit = {**KUBERNETES, "credentialsSecret": "s3", "volume": VOLUME, "executors": {"resources": resources}}
    given = audited(audit, connection=CONNECTION)
    (secret,) = (each["name"] for each in driver_of(given)["volumes"] if "secret" in each)

    found = executor_of(given)

    assert violations(found["spec"]) == []
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {
                "app.kubernetes.io/name": "delaytopic-audit",
                "app.kubernetes.io/instance": name_of(given),
                "app.kubernetes.io/component": "audit-executor",
            }
        },
        "spec": {
            "serviceAccountName": name_of(given),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
                "fsGroup": 65532,
                "fsGroupChangePolicy": "OnRootMismatch",
            },
            "imagePullSecrets": [{"name": "registry"}],
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 3600,
            "containers": [
                {
                    "name": "executor",
                    "command": ["python3", "-m", "delaytopic_audit.runtime.executor"],
                    "image": "delaytopic/audit:0.1.0",
                    "imagePullPolicy": "IfNotPresent",
                    "workingDir": "/tmp",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "capabilities": {"drop": ["ALL"]},
                        "readOnlyRootFilesystem": True,
                    },
                    "envFrom": [{"secretRef": {"name": "s3"}}],
                    "env": [{"name": "HOME", "value": "/tmp"}],
                    "resources": resources,
                    "volumeMounts": [
                        {"name": "spark-local-dir-tmp", "mountPath": "/tmp"},
                        {"name": secret, "mountPath": "/etc/delaytopic/secrets/scram", "readOnly": True},
                        {
                            "name": "ledger",
                            "mountPath": "/var/lib/delaytopic/reports/shop",
                            "subPath": "reports/shop",
                        },
                    ],
                }
            ],
            "volumes": [
                {"name": "spark-local-dir-tmp", "emptyDir": {"sizeLimit": "10Gi"}},
                {
                    "name": secret,
                    "secret": {
                        "secretName": "scram",
                        "defaultMode": 0o444,
                        "items": [{"key": "password", "path": "password"}],
                    },
                },
                {"name": "ledger", **VOLUME},
            ],
        },
    }


def test_the_driver_asks_the_api_server_with_an_account_of_its_own_and_knows_its_pod() -> None:
    given = audited({**KUBERNETES, "serviceAccount": "audits", "executors": {"min": 2, "max": 6}})

    driver = driver_of(given)

    (container,) = driver["containers"]
    assert violations(driver) == []
    assert (driver["serviceAccountName"], driver["automountServiceAccountToken"]) == ("driver", True)
    assert executor_of(given)["spec"]["serviceAccountName"] == "audits"
    assert {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"][2:]} == {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    assert [each["containerPort"] for each in container["ports"]] == [8080, 7078, 7079]
    names = ("--master", "--executor-pod", "--min-executors", "--max-executors")
    assert [arguments(given)[name] for name in names] == [
        "k8s://https://kubernetes.default.svc",
        "/etc/delaytopic/config/executor.yaml",
        "2",
        "6",
    ]


def test_in_mode_job_there_is_no_executor_and_no_token_whatever_else_is_set() -> None:
    given = audited({**URL, "driverAccount": "driver", "executors": {"max": 8}})

    driver = driver_of(given)

    assert (driver["serviceAccountName"], driver["automountServiceAccountToken"]) == (name_of(given), False)
    assert given.audit_object("ConfigMap")["data"].keys() == {"relay.yaml"}
    assert arguments(given)["--master"] == "local[*]"
    assert "--executor-pod" not in arguments(given)


def test_another_api_server_is_taken_and_another_kind_of_master_is_not() -> None:
    masters = {
        master: arguments(audited({**KUBERNETES, "master": master}))["--master"] for master in ("k8s://a", "spark://a")
    }

    assert masters == {"k8s://a": "k8s://a", "spark://a": "k8s://https://kubernetes.default.svc"}


def test_a_ledger_in_a_volume_is_a_url_as_executors_mount_it_too() -> None:
    given = audited({"schedule": "0 * * * *", "mode": "Kubernetes", "driverAccount": "driver", "volume": VOLUME})

    assert arguments(given)["--ledger"] == "file:///var/lib/delaytopic/ledger/namespaces/shop"
    assert arguments(given)["--output"] == "/var/lib/delaytopic/reports"
    mounted = executor_of(given)["spec"]["containers"][0]["volumeMounts"]
    assert "/var/lib/delaytopic/ledger/namespaces/shop" in [each["mountPath"] for each in mounted]


def test_operator_and_audit_mean_the_same_ports() -> None:
    _, *driver = driver_of(audited(KUBERNETES))["containers"][0]["ports"]

    assert [each["containerPort"] for each in driver] == [executor_pods.DRIVER_PORT, executor_pods.BLOCK_MANAGER_PORT]


@pytest.mark.parametrize(
    ("template", "bounds"),
    [
        ({}, (2, 4)),
        ({"min": 3}, (3, 4)),
        ({"min": 9}, (9, 9)),
        ({"max": 8}, (2, 8)),
        ({"max": 1}, (1, 1)),
        ({"min": 5, "max": 6}, (5, 6)),
    ],
)
def test_a_bound_that_a_class_leaves_out_is_the_operators_unless_it_contradicts_the_other(
    template: dict[str, Any], bounds: tuple[int, int]
) -> None:
    found = of_class({**KUBERNETES, "executors": {"min": 2, "max": 4}}, executors=template).executors

    assert (found.min, found.max) == bounds


@pytest.mark.parametrize(
    ("audit", "mode", "expected"),
    [
        (URL, None, "Job"),
        (URL, "Kubernetes", "Job"),
        ({**URL, "driverAccount": "driver"}, "Kubernetes", "Kubernetes"),
        (KUBERNETES, None, "Kubernetes"),
        (KUBERNETES, "Job", "Job"),
    ],
)
def test_a_class_chooses_the_mode_where_the_operator_has_an_account_for_it(
    audit: dict[str, Any], mode: str | None, expected: str
) -> None:
    assert of_class(audit, **({"mode": mode} if mode else {})).mode == expected


def test_resources_of_executors_are_the_classs_or_else_the_operators() -> None:
    own, others = {"limits": {"memory": "8Gi"}}, {"limits": {"memory": "3Gi"}}
    audit = {**KUBERNETES, "executors": {"resources": others}}

    assert of_class(audit, executors={"resources": own}).executors.resources == own
    assert of_class(audit).executors.resources == others


@pytest.mark.parametrize(
    ("audit", "line"),
    [
        ({**URL, "mode": "Kubernetes"}, "driverAccount: is required for mode Kubernetes"),
        ({**KUBERNETES, "executors": {"min": 5}}, "executors.min: must not be more than max"),
    ],
)
def test_what_cannot_be_is_refused_at_the_operators_start(audit: dict[str, Any], line: str) -> None:
    with pytest.raises(InvalidDocument, match=line):
        validate(AuditConfig, audit)
