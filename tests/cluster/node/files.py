"""The files that a pod sees: volumes written to a folder that stands for the root of its file system."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]
Find = Callable[[str, str], Object | None]
Files = dict[str, bytes]

RELAY_CONFIGURATION = "relay.yaml"


class VolumeNotReady(Exception):
    """A volume needs an object that is not there; the text is a kubelet's."""


@dataclass(frozen=True)
class PodRoot:
    """The folder, and what lies inside it under which path of the pod."""

    folder: Path
    mount_paths: frozenset[str] = field(default_factory=frozenset)

    def path(self, inside: str) -> Path:
        """Return where a path of the pod really is."""
        return self.folder / inside.lstrip("/")

    def mapped(self, text: str) -> str:
        """A text with every path below a mount point replaced by where it really is."""
        if not self.mount_paths:
            return text
        longest_first = sorted(self.mount_paths, key=len, reverse=True)
        pattern = rf"(?<![\w./-])({'|'.join(map(re.escape, longest_first))})(?![\w.-])"
        return re.sub(pattern, lambda found: f"{self.folder}{found[1]}", text)


def pod_root(pod: Object, folder: Path) -> PodRoot:
    """Of all its containers: they share what they mount at the same path."""
    containers = pod["spec"]["containers"]
    mounts = (mount for container in containers for mount in container.get("volumeMounts", []))
    return PodRoot(folder, frozenset(mount["mountPath"].rstrip("/") for mount in mounts))


def write_volumes(pod: Object, root: PodRoot, find: Find, token: Callable[[], str], pod_ip: str) -> None:
    """Write or bring up to date what the pod mounts; raises VolumeNotReady.

    `find(kind, name)` is a ConfigMap or Secret of the pod's namespace, `token()` one of its ServiceAccount. The relay's
    configuration is told to listen on the pod's own address.
    """
    contents = {volume["name"]: volume_files(pod, volume, find, token) for volume in pod["spec"].get("volumes", [])}
    for container in pod["spec"]["containers"]:
        for mount in container.get("volumeMounts", []):
            files = contents[mount["name"]]
            place = root.path(mount["mountPath"])
            if "subPath" in mount:
                _write_file(place, files.get(mount["subPath"]))
            else:
                _write_folder(place, _readable(files, root, pod_ip), root)


def remove_volumes(root: PodRoot) -> None:
    """Remove all of it."""
    shutil.rmtree(root.folder, ignore_errors=True)


def volume_files(pod: Object, volume: Object, find: Find, token: Callable[[], str]) -> Files:
    """Return what is in a volume, by relative path; nothing for an emptyDir. Raises VolumeNotReady."""
    sources = volume.get("projected", {}).get("sources") or [volume]
    files: Files = {}
    for source in sources:
        files |= dict(_source_files(pod, volume["name"], source, find, token))
    return files


def _source_files(
    pod: Object, volume: str, source: Object, find: Find, token: Callable[[], str]
) -> Iterator[tuple[str, bytes]]:
    namespace = pod["metadata"]["namespace"]
    for kind in ("configMap", "secret"):
        if kind in source:
            reference = source[kind]
            name = reference.get("secretName") or reference.get("name")
            found = find(kind, name)
            if found is None and not reference.get("optional"):
                shown = f'{kind.lower()} "{name}" not found'
                raise VolumeNotReady(f'MountVolume.SetUp failed for volume "{volume}" : {shown}')
            yield from _selected(volume, object_data(found or {}), reference)
    if "serviceAccountToken" in source:
        yield source["serviceAccountToken"]["path"], token().encode()
    for item in source.get("downwardAPI", {}).get("items", []):
        if item.get("fieldRef", {}).get("fieldPath") == "metadata.namespace":
            yield item["path"], namespace.encode()


def _selected(volume: str, data: Files, reference: Object) -> Iterator[tuple[str, bytes]]:
    items = reference.get("items")
    if items is None:
        yield from data.items()
        return
    for item in items:
        if item["key"] in data:
            yield item["path"], data[item["key"]]
        elif not reference.get("optional"):
            message = f"references non-existent config key: {item['key']}"
            raise VolumeNotReady(f'MountVolume.SetUp failed for volume "{volume}" : {message}')


def object_data(found: Object) -> Files:
    """Of a ConfigMap or a Secret."""
    encoded = found.get("binaryData", {}) if found.get("kind") == "ConfigMap" else found.get("data", {})
    plain = found.get("data", {}) if found.get("kind") == "ConfigMap" else {}
    files = {name: base64.b64decode(value) for name, value in (encoded or {}).items()}
    return files | {name: value.encode() for name, value in (plain or {}).items()}


def _readable(files: Files, root: PodRoot, pod_ip: str) -> Files:
    """A relay's configuration names files and an address: those that there are on this machine."""
    content = files.get(RELAY_CONFIGURATION)
    if content is None:
        return files
    document = yaml.safe_load(root.mapped(content.decode()))
    if isinstance(document, Mapping):
        document = {**document, "http": {**(document.get("http") or {}), "host": pod_ip}}
    return {**files, RELAY_CONFIGURATION: yaml.safe_dump(document, sort_keys=False).encode()}


def _write_folder(place: Path, files: Files, root: PodRoot) -> None:
    """Write what is new, and remove what is gone; what is mounted inside it stays."""
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        _replace(place / name, content)
    if files:
        kept = {place / name for name in files} | {root.path(inside) for inside in root.mount_paths}
        for path in (path for path in place.iterdir() if path.is_file() and path not in kept):
            path.unlink()


def _write_file(place: Path, content: bytes | None) -> None:
    if content is not None:
        _replace(place, content)


def _replace(path: Path, content: bytes) -> None:
    """A file changes at once, as a kubelet's do."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.touch(mode=0o600)
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
