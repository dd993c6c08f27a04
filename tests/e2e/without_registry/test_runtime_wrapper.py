"""The wrapper takes from a container what its root may not give, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.e2e.without_registry.runtime_wrapper import changed_file, permitted_document

PROCESS: dict[str, Any] = {
    "args": ["/sbin/init"],
    "capabilities": {
        "bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE", "CAP_KILL"],
        "effective": ["CAP_SYS_RESOURCE"],
    },
    "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1048576, "soft": 1048576}],
    "oomScoreAdj": -999,
}
PERMITTED: dict[str, Any] = {
    "args": ["/sbin/init"],
    "capabilities": {"bounding": ["CAP_CHOWN", "CAP_KILL"], "effective": []},
    "oomScoreAdj": 0,
}


def test_a_bundle_keeps_everything_but_what_needs_the_right() -> None:
    bundle = {"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": PROCESS}

    assert permitted_document(bundle) == {"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": PERMITTED}


def test_a_process_that_joins_a_container_is_treated_alike() -> None:
    assert permitted_document(PROCESS) == PERMITTED


@pytest.mark.parametrize(
    "process", [{"args": ["sh"]}, {"args": ["sh"], "oomScoreAdj": 500}, {"args": ["sh"], "capabilities": None}]
)
def test_a_process_that_needs_no_right_stays_as_it_is(process: dict[str, Any]) -> None:
    assert permitted_document(process) == process


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--root", "/r", "create", "--bundle", "/b", "--pid-file", "/p", "id"], "/b/config.json"),
        (["run", "-b", "/b", "id"], "/b/config.json"),
        (["create", "--bundle=/b", "id"], "/b/config.json"),
        (["create", "id"], "./config.json"),
        (["exec", "--process", "/tmp/p.json", "--detach", "id"], "/tmp/p.json"),
        (["exec", "-p", "/tmp/p.json", "id"], "/tmp/p.json"),
        (["exec", "id", "ls"], None),
        (["start", "id"], None),
        (["kill", "id", "9"], None),
    ],
)
def test_only_a_command_that_starts_something_has_a_file_to_change(arguments: list[str], expected: str | None) -> None:
    assert changed_file(arguments) == expected
