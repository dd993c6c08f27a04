from __future__ import annotations

import pytest

from delaytopic_api.values import bucket_topics
from delaytopic_api.values.topic_config import MOST_MESSAGE_BYTES

MIB = 1 << 20


@pytest.mark.parametrize(
    ("source_batch_bytes", "largest"),
    [(MIB, 16 * MIB), (8 * MIB, 16 * MIB), (8 * MIB + 1, 16 * MIB + 2), (MOST_MESSAGE_BYTES, MOST_MESSAGE_BYTES)],
)
def test_bucket_topics_take_what_came_compressed_and_twice_what_the_source_takes(
    source_batch_bytes: int, largest: int
) -> None:
    topics = bucket_topics("delaytopic.shop.reminders", 10_000, 3_600_000, source_batch_bytes)

    assert {topic.config["max.message.bytes"] for topic in topics} == {str(largest)}
