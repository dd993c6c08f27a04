"""DelayTopics to audit on a real Kafka: topics, settings, and audits with a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from delaytopic_api import DelayTopic, Settings, load_document, resolve
from delaytopic_api.relay import KafkaClient
from delaytopic_audit.audit import Audit, Audited, Options
from delaytopic_audit.errors import AuditError
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.report import Report
from delaytopic_audit.pipeline.ports import silent
from delaytopic_cli.audit.options import rules_of
from delaytopic_gateway.client.topics import TopicPlan, create_topics

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Headers = list[tuple[str, str | bytes | None]]


@dataclass
class AuditedTopic:
    """A DelayTopic `tests/<name>`, whose ledger is in a folder of the test."""

    name: str
    bootstrap_servers: str
    folder: Path
    spec: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source, self.target, self.dead_letter = (f"{self.name}.{part}" for part in ("source", "target", "dlq"))
        self.other = f"{self.name}.other"

    def create(self, partitions: int, **settings: str) -> AuditedTopic:
        """Its topics; `settings` are of source and targets."""
        plans = [TopicPlan(topic, partitions, settings) for topic in (self.source, self.target, self.other)]
        create_topics(self.bootstrap_servers, [*plans, TopicPlan(self.dead_letter, 1)])
        return self

    def create_only(self, topic: str, partitions: int, **settings: str) -> None:
        """One of them."""
        create_topics(self.bootstrap_servers, [TopicPlan(topic, partitions, settings)])

    def settings(self) -> Settings:
        """Return what is in force for it."""
        topic = load_document(self._document())
        assert isinstance(topic, DelayTopic)
        return resolve(topic)

    def write_document(self, folder: Path) -> Path:
        """Write its YAML, for the command line."""
        file = folder / "topic.yaml"
        file.write_text(yaml.safe_dump(self._document()), encoding="utf-8")
        return file

    def spec_written(self) -> dict[str, Any]:
        """Return its spec as its author would write it."""
        return {
            "source": {"topic": self.source},
            "target": {"topic": self.target, "allowedTopics": [self.other]},
            "deadLetter": {"topic": self.dead_letter},
            "slo": {"lateness": "5s", "objective": "99.9%", "window": "24h"},
            **self.spec,
        }

    def _document(self) -> dict[str, Any]:
        document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "spec": self.spec_written()}
        return {**document, "metadata": {"name": self.name, "namespace": "tests"}}

    def audit(self, spark: SparkSession, **given: Any) -> Audit:
        """An audit that is ready to run."""
        return audit_of(spark, [self], **given)

    def run(self, spark: SparkSession, now_ms: int, **given: Any) -> Report:
        """One whole audit."""
        audit = self.audit(spark, **given)
        (report,) = audit.run(now_ms, silent).values()
        audit.done()
        if isinstance(report, AuditError):
            raise report
        return report

    def ledger(self, spark: SparkSession) -> Ledger:
        """To look into."""
        return Ledger(spark, str(self.folder))

    def producer(self) -> Producer:
        """A topic that keeps the order of what it is given."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
        return Producer({**settings, "queue.buffering.max.messages": 500_000})


def audit_of(
    spark: SparkSession,
    topics: Sequence[AuditedTopic],
    *,
    any_clock: bool = True,
    restart: bool = False,
    grace_ms: int | None = None,
    retention_ms: int = 10 * DAY_MS,
    **given: Any,
) -> Audit:
    """An audit of several, in the ledger of the first, that is ready to run."""
    audited = []
    for topic in topics:
        settings = topic.settings()
        usual = rules_of(settings, None, None, None)
        grace = usual.grace_ms if grace_ms is None else grace_ms
        audited.append(Audited(settings, usual.model_copy(update={"grace_ms": grace, "retention_ms": retention_ms})))
    options = Options(
        ledger=str(topics[0].folder),
        window_ms=given.pop("window_ms", DAY_MS),
        client={},
        trusts_any_clock=any_clock,
        restarts=restart,
        **given,
    )
    return Audit(spark, audited, KafkaClient(bootstrap_servers=topics[0].bootstrap_servers), options)
