"""Puts images into the store of a root's containerd, without a node that runs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playground.cluster.commands import succeeds
from playground.cluster.errors import NotReady
from playground.without_registry.node_root import CONTAINERD_SETTINGS, in_root, sandbox_image

from delaytopic_process.waiting import wait_until

_WORK = "var/preloading"
_SOCKET = f"/{_WORK}/containerd.sock"
_SECONDS = 60.0
# The services that bring images in; pods and their file systems need a machine that runs.
_SETTINGS = f"""
version = 2
root = "/var/lib/containerd"
state = "/{_WORK}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{_SOCKET}"
"""


def preload(root: Path, archive: Path) -> None:
    """Bring in the archive's images; the node unpacks them when their first pod starts."""
    work = root / _WORK
    work.mkdir()
    (work / "config.toml").write_text(_SETTINGS)
    shutil.copyfile(archive, work / "images.tar")
    sandbox = sandbox_image((root / CONTAINERD_SETTINGS).read_text())
    with _containerd(root):
        _ctr(root, "images", "import", "--no-unpack", f"/{_WORK}/images.tar")
        _ctr(root, "images", "label", sandbox, "io.cri-containerd.pinned=pinned")
    shutil.rmtree(work)


@contextmanager
def _containerd(root: Path) -> Iterator[None]:
    command = ["chroot", str(root), "containerd", "--config", f"/{_WORK}/config.toml"]
    with (root / _WORK / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            if not wait_until(lambda: _answers(root), timeout_seconds=_SECONDS, poll_seconds=0.2):
                end = (root / _WORK / "log").read_text(errors="replace")[-2000:]
                raise NotReady(f"containerd in {root} did not answer within {_SECONDS:g} s; its log ends:\n{end}")
            yield
        finally:
            process.terminate()


def _answers(root: Path) -> bool:
    return succeeds("chroot", root, "ctr", "--address", _SOCKET, "version")


def _ctr(root: Path, *arguments: str) -> None:
    in_root(root, "ctr", "--address", _SOCKET, "--namespace", "k8s.io", *arguments)
