"""One real Kafka for all tests of the audit here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.slo.delay_topics import AuditedTopic


@pytest.fixture
def audited(kafka: KafkaAddress, tmp_path: Path) -> Callable[..., AuditedTopic]:
    """Makes a DelayTopic with topics of its own; their settings by keyword."""

    def make(partitions: int = 2, spec: dict[str, Any] | None = None, **settings: str) -> AuditedTopic:
        topic = AuditedTopic(unique("audited"), kafka.bootstrap_servers, tmp_path / "ledger", spec or {})
        return topic.create(partitions, **settings)

    return make
