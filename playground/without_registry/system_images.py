"""The images of a cluster's own pods, all from one layer: the packet filter's tools, and the programs of a node."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from images.tools.go_builds import Report
from playground.cluster.go_programs import NODE_PROGRAMS
from playground.without_registry.archive import Image, write_archive
from playground.without_registry.debian_root import make_root, write_layer

PACKAGES: Final = ("busybox-static", "ca-certificates", "iptables", "netbase")
_NEVER_ENDS = ("/bin/busybox", "sleep", "2147483647")


def system_images(names: Iterable[str]) -> list[Image]:
    """One for each name that kubeadm and containerd ask for, by what has to start in it."""
    return [Image(names=(name,), entrypoint=_entrypoint(name)) for name in sorted(names)]


def write_system_images(archive: Path, names: Iterable[str], node: Path, coredns: Path, report: Report) -> None:
    """Write the archive; beside it are left the folder and the layer that it was made from."""
    root, layer = archive.with_suffix(".root"), archive.with_suffix(".layer")
    make_root(root, PACKAGES, "extract", report)
    _choose_iptables(root)
    programs = root / "usr/local/bin"
    programs.mkdir(parents=True, exist_ok=True)
    shutil.copy2(node, programs / "node")
    for name in NODE_PROGRAMS:
        (programs / name).symlink_to("node")
    shutil.copy2(coredns, root / "coredns")
    write_layer(root, layer)
    write_archive(archive, layer, system_images(names))


def _choose_iptables(root: Path) -> None:
    """Return what installing the package would do: the plain names are those of the nft variant."""
    for name in ("iptables", "ip6tables"):
        for action in ("", "-save", "-restore"):
            os.symlink(f"{name}-nft{action}", root / "usr/sbin" / f"{name}{action}")


def _entrypoint(name: str) -> tuple[str, ...]:
    last = name.rpartition("/")[2].partition(":")[0]
    return {"coredns": ("/coredns",), "pause": _NEVER_ENDS}.get(last, ())
