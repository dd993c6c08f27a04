"""Writes archives of images as `docker load` and `ctr images import` read them, without an engine."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH_VARIABLE = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """Names and settings of an image; `docker import` would lose the stop signal."""

    names: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    environment: tuple[str, ...] = (PATH_VARIABLE,)
    stop_signal: str = ""
    labels: dict[str, str] = field(default_factory=dict)


def write_archive(path: Path, layer: Path, images: Sequence[Image]) -> None:
    """Images that share one layer, which is a tar file: equal inputs give equal bytes."""
    digest = _digest(layer)
    layer_name = f"{digest}/layer.tar"
    manifest: list[dict[str, Any]] = []
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        with layer.open("rb") as content:
            member = tarfile.TarInfo(layer_name)
            member.size = layer.stat().st_size
            archive.addfile(member, content)
        for image in images:
            configuration = json.dumps(_configuration(image, digest), sort_keys=True).encode()
            name = f"{hashlib.sha256(configuration).hexdigest()}.json"
            _add(archive, name, configuration)
            manifest.append({"Config": name, "RepoTags": list(image.names), "Layers": [layer_name]})
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def architecture() -> str:
    """Return the architecture of this machine, as images call it."""
    machine = platform.machine()
    return ARCHITECTURES.get(machine, machine)


def _configuration(image: Image, digest: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"Env": list(image.environment), "Entrypoint": list(image.entrypoint)}
    if image.stop_signal:
        settings["StopSignal"] = image.stop_signal
    if image.labels:
        settings["Labels"] = image.labels
    created = "1970-01-01T00:00:00Z"
    return {
        "architecture": architecture(),
        "os": "linux",
        "created": created,
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": created, "created_by": "playground.cluster"}],
    }


def _digest(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))
