"""A record that the operator writes is there as it was to be written."""

from __future__ import annotations

import pytest
from tests.harness.names import unique
from tests.harness.shared_servers import KafkaAddress
from tests.support.relay.route import read_topic

from delaytopic_gateway.client.raw_records import Coordinates, RawRecord
from delaytopic_operator.errors import OperatorError
from delaytopic_operator.kafka.admin import KafkaCluster, KafkaClusters
from delaytopic_operator.model.kafka_view import NewRecord
from delaytopic_operator.topics.actions import CreateTopic

pytestmark = pytest.mark.integration

HEADERS = (("deliver-id", b"u1"), ("deliver-action", b"cancel"))
AT_MS = 1_795_510_800_000


@pytest.fixture
def cluster(kafka: KafkaAddress) -> KafkaCluster:
    return KafkaClusters(timeout_s=5).cluster({"bootstrap.servers": kafka.bootstrap_servers})


@pytest.mark.parametrize("value", [b"report", None], ids=["a value", "a tombstone"])
def test_a_record_is_written_whole_to_its_partition(
    cluster: KafkaCluster, kafka: KafkaAddress, value: bytes | None
) -> None:
    topic = unique("written")
    cluster.perform(CreateTopic(topic, 4, 1, {}))

    cluster.write(NewRecord(topic, 3, b"key", value, HEADERS, AT_MS))

    written = RawRecord(Coordinates(topic, 3, 0), AT_MS, b"key", value, HEADERS)
    assert read_topic(kafka.bootstrap_servers, topic) == [written]


def test_a_record_for_a_topic_that_is_not_there_is_an_error(cluster: KafkaCluster) -> None:
    with pytest.raises(OperatorError):
        cluster.write(NewRecord(unique("nowhere"), 0, None, None, HEADERS, AT_MS))
