"""Archives of images have the layout that `docker load` reads."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.without_registry.archive import PATH_VARIABLE, Image, architecture, write_archive

NODE = Image(names=("node:1",), entrypoint=("/entrypoint", "/sbin/init"), stop_signal="SIGRTMIN+3")
PAUSE = Image(names=("pause:1", "pause:latest"), labels={"for": "pods"})


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    path = tmp_path / "layer.tar"
    path.write_bytes(b"what a layer holds")
    return path


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        read = {member.name: opened.extractfile(member) for member in opened}
        return {name: content.read() if content else b"" for name, content in read.items()}


def test_images_share_their_layer_and_each_has_its_own_settings(layer: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "image.tar", layer, [NODE, PAUSE])

    found = members(tmp_path / "image.tar")
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    manifest: list[dict[str, Any]] = json.loads(found["manifest.json"])
    settings = [json.loads(found[image["Config"]]) for image in manifest]
    assert found[f"{digest}/layer.tar"] == layer.read_bytes()
    assert [image["RepoTags"] for image in manifest] == [["node:1"], ["pause:1", "pause:latest"]]
    assert [image["Layers"] for image in manifest] == [[f"{digest}/layer.tar"]] * 2
    assert [image["config"] for image in settings] == [
        {"Env": [PATH_VARIABLE], "Entrypoint": ["/entrypoint", "/sbin/init"], "StopSignal": "SIGRTMIN+3"},
        {"Env": [PATH_VARIABLE], "Entrypoint": [], "Labels": {"for": "pods"}},
    ]
    assert [image["rootfs"] for image in settings] == [{"type": "layers", "diff_ids": [f"sha256:{digest}"]}] * 2
    assert {(image["os"], image["architecture"]) for image in settings} == {("linux", architecture())}


def test_settings_are_named_by_their_digest(layer: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "image.tar", layer, [NODE, PAUSE])

    settings = {name: content for name, content in members(tmp_path / "image.tar").items() if len(name) == 64 + 5}
    assert len(settings) == 2
    assert all(name == f"{hashlib.sha256(content).hexdigest()}.json" for name, content in settings.items())


def test_equal_inputs_give_equal_bytes(layer: Path, tmp_path: Path) -> None:
    write_archive(tmp_path / "first.tar", layer, [NODE])
    write_archive(tmp_path / "second.tar", layer, [NODE])

    assert (tmp_path / "first.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
