"""One real Kafka for these tests, and the operator's own client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.harness.names import unique

from delaytopic_operator.kafka.admin import KafkaClusters


@pytest.fixture
def clusters() -> Iterator[KafkaClusters]:
    # What was read is not kept: looks follow each other at once, and each says how it is then.
    opened = KafkaClusters(poll_s=0)
    yield opened
    opened.close()


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return unique("shop.progress")
