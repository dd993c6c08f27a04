"""`delaytopic trial` through a real relay, and where none delivers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.support.relay.records import BUCKETS_NIGHTLY, MakeRoute
from tests.support.relay.route import PARTITIONS
from tests.support.relay.routes import STEADY

from delaytopic_cli.__main__ import run
from delaytopic_gateway.client.raw_records import Coordinates

pytestmark = pytest.mark.integration


@pytest.mark.takes_long("a relay starts, and the record is watched for a while")
@BUCKETS_NIGHTLY
def test_a_record_that_a_relay_delivers_is_seen_with_its_times(
    make_route: MakeRoute, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route(limits=STEADY)
    route.start_relay().wait_until_delivering(PARTITIONS)
    login = tmp_path / "kafka.yaml"
    login.write_text(yaml.safe_dump({"bootstrapServers": route.servers.bootstrap_servers}), encoding="utf-8")

    options = ["--target", route.target, "--kafka-config", str(login), "--after", "1s", "-o", "json"]
    code = run(["trial", route.source, *options])

    said = capsys.readouterr()
    assert (code, said.err.count("\n")) == (0, 1)
    shown = json.loads(said.out)
    (source,), (delivered,) = route.read(route.source), route.read(route.target)
    assert shown["source"] == str(source.at)
    assert (shown["partition"], shown["offset"]) == (delivered.at.partition, delivered.at.offset)
    assert shown["dueMs"] == source.timestamp_ms + 1_000
    assert shown["latenessMs"] >= 0
    assert (delivered.key, delivered.value) == (source.key, source.value)


def test_a_record_that_nobody_delivers_is_reported_after_the_patience(
    make_route: MakeRoute, capsys: pytest.CaptureFixture[str]
) -> None:
    route = make_route()
    options = [
        "--target",
        route.target,
        "-b",
        route.servers.bootstrap_servers,
        "--after",
        "100ms",
        "--timeout",
        "200ms",
    ]

    code = run(["trial", route.source, *options])

    sent, error = capsys.readouterr().err.splitlines()
    (source,) = route.read(route.source)
    assert code == 6
    assert sent.startswith(f"sent {source.at}, due at ")
    assert error.startswith(f"error: {Coordinates(*source.at)} has not arrived on {route.target}, ")
