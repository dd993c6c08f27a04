"""Tests that what is deleted from a node at the end is all that was kept there, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.support.installed_platform import MANIFESTS
from tests.e2e.support.node_data import FOLDER, PARENT, cleaner


def host_folders() -> Iterator[Path]:
    """Return those of Kafka and Redis."""
    for path in sorted(MANIFESTS.glob("*.yaml")):
        objects: list[dict[str, Any]] = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        for each in objects:
            volumes = each.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", [])
            yield from (Path(volume["hostPath"]["path"]) for volume in volumes if "hostPath" in volume)


def test_kafka_and_redis_keep_everything_in_the_folder_that_is_deleted() -> None:
    folders = list(host_folders())

    assert [folder.name for folder in folders] == ["kafka", "redis"]
    assert {folder.parent for folder in folders} == {Path(PARENT, FOLDER)}


def test_the_pod_that_deletes_it_runs_on_the_node_that_has_it() -> None:
    pod = cleaner("cleaner-0", "node-7", "kafka:1")
    [container] = pod["spec"]["containers"]
    [volume], [mount] = pod["spec"]["volumes"], container["volumeMounts"]

    assert pod["spec"]["nodeName"] == "node-7"
    assert volume["hostPath"] == {"path": PARENT, "type": "Directory"}
    assert container["command"] == ["rm", "-rf", f"{mount['mountPath']}/{FOLDER}"]
