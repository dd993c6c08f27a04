"""A clock that is moved, on real parts: through a relay that is killed, a Redis that is emptied, and by the command."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from redis import Redis
from tests.harness.shared_servers import SharedKafka, SharedRedis
from tests.support.local.session import local_session
from tests.support.relay.process import wait_for
from tests.support.relay.records import Sent

from delaytopic_api.records import DELIVER_AFTER
from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.watching import receipt_of
from delaytopic_local.testing.servers import session_servers

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.nightly  # each day simulated relays are killed, and their Redis is emptied, while their clock is moved
@pytest.mark.takes_long("a Kafka and a Redis of its own")
def test_what_waits_keeps_its_time_through_a_killed_relay_and_an_emptied_redis(tmp_path: Path) -> None:
    file = tmp_path / "topics.yaml"
    spec = {"source": {"topic": "a.delayed", "partitions": 2}, "target": {"topic": "a"}}
    metadata = {"name": "a", "namespace": "shop"}
    document = {"apiVersion": "delaytopic.dev/v1beta1", "kind": "DelayTopic", "metadata": metadata, "spec": spec}
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with session_servers() as servers:
        topic = servers.topic(file)
        topic.send("before", after="10d")
        topic.advance("7d")
        topic.send("after", after="4d")
        topic.advance("1h")
        (group, _) = servers._groups["shop/a"]
        assert servers._servers.redis_url is not None

        group.relays[0].kill()
        Redis.from_url(servers._servers.redis_url).flushall()
        topic.advance("2d")
        assert topic.arrived() == []
        topic.advance("23h")
        first = topic.arrived()
        topic.advance("1d")

        assert [(each.text, each.waited) for each in first] == [("before", timedelta(days=10))]
        assert [each.text for each in topic.arrived()] == ["before", "after"]
        assert topic.arrived()[1].waited == timedelta(days=4)


@pytest.mark.nightly  # each day tests move the clock of relays of their own
def test_the_command_moves_the_clock_of_a_local(
    tmp_path: Path, kafka: SharedKafka, redis: SharedRedis, capsys: pytest.CaptureFixture[str]
) -> None:
    with local_session(tmp_path, kafka.bootstrap_servers, redis.url, "--clock", "manual") as session:
        session.send([Sent(b"k", b"week", [(DELIVER_AFTER, b"168h")])])
        assert run(["clock", "advance", "7d", "-o", "json"]) == 0
        moved = json.loads(capsys.readouterr().out)
        wait_for(lambda: session.values(session.target) == ["week"])
        assert run(["clock", "show", "-o", "json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        (record,) = session.read(session.target)
        receipt = receipt_of([*record.headers])

        assert (moved["shiftMs"], shown["shiftMs"]) == (7 * DAY_MS, 7 * DAY_MS)
        assert receipt is not None
        assert receipt.timestamp_ms is not None
        assert receipt.due_ms == receipt.timestamp_ms + 7 * DAY_MS
        assert receipt.due_ms <= receipt.sent_ms <= shown["nowMs"]
        assert run(["trial", session.source, "-b", session.broker]) == 2
        assert "runs with --clock manual" in capsys.readouterr().err
