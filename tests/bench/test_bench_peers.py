"""Relays that are not ours, measured beside ours."""

from __future__ import annotations

from pathlib import Path

from bench.bed import Bed
from bench.cases.contenders import Peer
from bench.quick import main
from click.testing import CliRunner

from delaytopic_api.values import Dialect

BED = Bed("127.0.0.1:9092", "redis://127.0.0.1:6379", Path("/logs"), "in memory")


def test_the_command_of_a_peer_is_split_as_by_a_shell_and_names_what_it_needs() -> None:
    peer = Peer(Dialect.CESIUM, "'/opt/my relay' -b {bootstrap_servers} --from={source} --to {target} -g {group}")

    found = peer.arguments(BED, "orders later", "orders", "peer.1")

    assert found == [
        "/opt/my relay",
        "-b",
        "127.0.0.1:9092",
        "--from=orders later",
        "--to",
        "orders",
        "-g",
        "peer.1",
    ]


def test_a_command_that_names_what_is_not_there_is_refused_before_anything_starts() -> None:
    found = CliRunner().invoke(main, ["--peer", "cesium", "Cesium", "relay --to {topic}"])

    assert (found.exit_code, "the command of cesium cannot be filled in ('topic')" in found.output) == (2, True)
