"""The audit's container as a process, against a real Kafka: its verdict gets to the operator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.operator.desired.routes import Route, route

from delaytopic_api.status import ConditionStatus, ConditionType
from delaytopic_cli.embedded.kafka_server import KafkaServer
from delaytopic_cli.embedded.topics import TopicPlan, create_topics
from delaytopic_operator.audit_verdict import last_verdict
from delaytopic_operator.conditions import Finding

pytestmark = pytest.mark.integration


def audited(bootstrap_servers: str, volume: Path) -> Route:
    audit = {"schedule": "H * * * *", "ledger": volume.as_uri()}
    return route(config={"audit": audit}, connection={"bootstrapServers": bootstrap_servers})


def outside_of(word: str, places: dict[str, object]) -> str:
    """A path of the container as one of this machine."""
    for inside, place in places.items():
        if word.startswith(inside):
            return f"{place}{word.removeprefix(inside)}"
    return word


def run(given: Route, folder: Path) -> tuple[int, str]:
    """The container's exit code and termination message, with what it mounts in a folder."""
    (container,) = given.audit_child("CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    (folder / "relay.yaml").write_text(given.child("ConfigMap")["data"]["relay.yaml"], encoding="utf-8")
    (folder / "documents.yaml").write_text(given.audit_child("ConfigMap")["data"]["documents.yaml"], encoding="utf-8")
    temporary, message = folder / "tmp", folder / "termination-log"
    temporary.mkdir(exist_ok=True)
    places: dict[str, object] = {
        "/etc/delaytopic/config": folder,
        "/etc/delaytopic/audit": folder,
        container["terminationMessagePath"]: message,
        "/tmp/": f"{temporary}/",
    }
    words = [outside_of(word, places) for word in container["args"]]
    program = Path(sys.executable).with_name(container["command"][0])
    environment = os.environ | {variable["name"]: str(temporary) for variable in container["env"]}
    process = subprocess.run([program, *words], cwd=temporary, env=environment, timeout=600, check=False)
    return process.returncode, message.read_text(encoding="utf-8")


def pod_with(message: str) -> dict[str, Any]:
    return {"status": {"containerStatuses": [{"state": {"terminated": {"message": message}}}]}}


def test_the_verdict_of_an_audit_becomes_a_condition(tmp_path: Path) -> None:
    with KafkaServer(tmp_path / "kafka") as kafka:
        stamped = {"message.timestamp.type": "LogAppendTime"}
        create_topics(kafka.bootstrap_servers, [TopicPlan(name, 1, stamped) for name in ("a", "b", "a.dlq")])

        code, message = run(audited(kafka.bootstrap_servers, tmp_path / "ledger"), tmp_path)

    verdict = last_verdict([pod_with(message)], {})
    assert code == 0
    assert verdict is not None
    assert verdict.finding[:3] == Finding(ConditionType.SLO_MET, ConditionStatus.TRUE, "Met")[:3]


def test_an_audit_that_does_not_reach_kafka_fails_and_says_why(tmp_path: Path) -> None:
    code, message = run(audited("127.0.0.1:1", tmp_path / "ledger"), tmp_path)

    verdict = last_verdict([pod_with(message)], {})
    assert code == 2
    assert verdict is not None
    assert verdict.finding[:3] == Finding(ConditionType.SLO_MET, ConditionStatus.UNKNOWN, "CannotJudge")[:3]
    assert "127.0.0.1:1" in verdict.finding.message
