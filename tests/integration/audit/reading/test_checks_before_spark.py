"""Checks of `audit run` before it starts Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress

from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.topics import TopicPlan, create_topics

pytestmark = pytest.mark.integration


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(**_: Any) -> NoReturn:
        pytest.fail("Spark was started")

    monkeypatch.setattr("delaytopic_cli.audit.commands.spark_session", start)


@pytest.mark.usefixtures("no_spark")
def test_topics_that_allow_no_verdict_are_reported_at_once(kafka: KafkaAddress, tmp_path: Path) -> None:
    source, target = unique("source"), unique("target")
    create_topics(kafka.bootstrap_servers, [TopicPlan(source, 1, {"message.timestamp.type": "CreateTime"})])
    file = tmp_path / "topics.yaml"
    file.write_text(
        "apiVersion: delaytopic.dev/v1beta1\nkind: DelayTopic\nmetadata: {name: orders, namespace: shop}\n"
        f"spec: {{source: {{topic: {source}}}, target: {{topic: {target}}}}}\n",
        encoding="utf-8",
    )
    folders = ["--ledger", str(tmp_path / "ledger"), "--output", str(tmp_path / "report")]

    code = run(["audit", "run", "-f", str(file), "-b", kafka.bootstrap_servers, "--quiet", *folders])

    report = json.loads((tmp_path / "report" / "shop" / "orders" / "report.json").read_text(encoding="utf-8"))
    reasons = [reason.partition(":")[0] for reason in report["reasons"]]
    assert (code, reasons) == (
        2,
        [
            f"the source topic {source} has message.timestamp.type=CreateTime",
            f"the target topic {target} does not exist",
            f"the dead-letter topic {source}.dlq does not exist",
        ],
    )
