"""A record names a topic that the relay's user may not see or write to: that costs no other record its time."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # a public name, by implicit re-export
from tests.support.records import Sent, at, now_ms, produce
from tests.support.route import PARTITIONS, ClientHeaders
from tests.support.secure_servers import SCRAM, GuardedRoute, SecureKafka, by_password, deny
from tests.support.tls import Certificates

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("guarantee", ["ExactlyOnce", "AtLeastOnce"])
@pytest.mark.parametrize("right", [AclOperation.WRITE, AclOperation.DESCRIBE])
def test_a_record_for_a_topic_without_the_right_becomes_a_dead_letter_and_the_others_arrive(
    guarded_route: GuardedRoute,
    guarded_kafka: SecureKafka,
    certificates: Certificates,
    tmp_path: Path,
    guarantee: str,
    right: AclOperation,
) -> None:
    route = guarded_route(guarded_kafka.sasl, by_password(tmp_path, certificates, SCRAM), guarantee=guarantee)
    deny(guarded_kafka.plain, route.other, right)
    route.start_relay().wait_until_delivering(PARTITIONS)
    soon_ms = now_ms() + 500

    elsewhere: ClientHeaders = [at(soon_ms), ("deliver-to", route.other.encode())]
    records = [Sent(b"k", b"elsewhere", elsewhere), Sent(b"k", b"v", [at(soon_ms)])]
    forbidden, _ = produce(guarded_kafka.plain, route.source, records)
    verdict = route.settled_verdict()

    # The verdict knows nothing of rights.
    assert verdict.faults == {"dead_letters_unwanted": (forbidden,)}
    assert (verdict.delivered, [letter.reason for letter in route.dead_letters()]) == (1, ["unknown-target"])
