"""The root of a node: what the Dockerfile of kind's base image does, with Debian's containerd and our own programs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, Final

from images.tools.go_builds import KUBERNETES_VERSION, Report
from playground.cluster.commands import run
from playground.cluster.go_programs import NODE_PROGRAMS
from playground.without_registry.debian_root import make_root

PACKAGES: Final = (
    *("systemd", "bash", "ca-certificates", "curl", "e2fsprogs", "jq", "kmod", "libseccomp2", "mount", "procps"),
    *("conntrack", "ethtool", "iproute2", "iptables", "nftables", "util-linux"),
    *("containerd", "containernetworking-plugins", "runc"),
)
CONTAINERD_SETTINGS: Final = "etc/containerd/config.toml"
_SETTINGS = Path(__file__).with_name("settings")
_ENABLED = ("kubelet.service", "containerd.service", "undo-mount-hacks.service")
_CALLED_BY_KIND = ("containerd", "containerd-shim-runc-v2", "ctr")
# Units of a machine that make no sense in a container.
_UNWANTED = (
    "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
    "lib/systemd/system/multi-user.target.wants/*",
    "etc/systemd/system/*.wants/*",
    "lib/systemd/system/local-fs.target.wants/*",
    "lib/systemd/system/sockets.target.wants/*udev*",
    "lib/systemd/system/sockets.target.wants/*initctl*",
    "lib/systemd/system/basic.target.wants/*",
)


def make_node_root(root: Path, kind_files: Path, node: Path, report: Report) -> None:
    """Everything of a node but the images of its own pods."""
    make_root(root, PACKAGES, "essential", report)
    _copy_kind_files(kind_files, root)
    _settle_services(root)
    _settle_containerd(root)
    _put_programs(root, node)
    for name in ("etc/kubernetes/manifests", "kind/manifests", "etc/cni/net.d"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("default-cni.yaml", "default-storage.yaml"):
        text = (_SETTINGS / name).read_text(encoding="utf-8")
        (root / "kind/manifests" / name).write_text(text.replace("SYSTEM_IMAGE", proxy_image()))


def in_root(root: Path, *command: str) -> str:
    """Run a program of the root, in it; returns what it printed."""
    return run("chroot", root, *command)


def image_names(root: Path) -> list[str]:
    """Return the names of the images that kubeadm and containerd of this root start pods from."""
    listed = in_root(root, "kubeadm", "config", "images", "list", f"--kubernetes-version=v{KUBERNETES_VERSION}")
    return sorted({*listed.split(), sandbox_image((root / CONTAINERD_SETTINGS).read_text())})


def sandbox_image(settings: str) -> str:
    """The image that holds a pod's namespaces, by containerd's settings."""
    found = re.search(r'^\s*sandbox_image = "([^"]+)"', settings, re.MULTILINE)
    assert found, "kind's settings of containerd name no sandbox_image any more"
    return found[1]


def proxy_image() -> str:
    """One of the images that a node has from the beginning."""
    return f"registry.k8s.io/kube-proxy:v{KUBERNETES_VERSION}"


def bundle_defaults(specification: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults of pods' containers: containerd's, with kind's hook, without limits that root may not set."""
    hook = {"path": "/kind/bin/mount-product-files.sh"}
    process = {name: value for name, value in specification["process"].items() if name != "rlimits"}
    return {**specification, "process": process, "hooks": {"createContainer": [hook]}}


def _copy_kind_files(kind_files: Path, root: Path) -> None:
    for name in ("etc", "kind"):
        shutil.copytree(kind_files / name, root / name, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for name in ("usr/local/bin", "kind/bin"):
        for source in (kind_files / name).iterdir():
            shutil.copyfile(source, root / name / source.name)
            (root / name / source.name).chmod(0o755)


def _settle_services(root: Path) -> None:
    for pattern in _UNWANTED:
        for unit in root.glob(pattern):
            unit.unlink()
    with (root / "etc/systemd/journald.conf").open("a") as settings:
        settings.write("ReadKMsg=no\n")
    (root / "sbin/init").symlink_to("/usr/lib/systemd/systemd")
    in_root(root, "systemctl", "enable", *_ENABLED)
    in_root(root, "systemctl", "mask", "systemd-binfmt.service")


def _settle_containerd(root: Path) -> None:
    for name in _CALLED_BY_KIND:
        (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/{name}")
    shutil.copytree(root / "usr/lib/cni", root / "opt/cni/bin")
    shutil.rmtree(root / "usr/lib/cni")
    defaults = bundle_defaults(json.loads(in_root(root, "ctr", "oci", "spec")))
    (root / "etc/containerd/cri-base.json").write_text(json.dumps(defaults))
    path = root / CONTAINERD_SETTINGS
    # A pod's score never gets lower than containerd's own, which root may not set everywhere.
    path.write_text(path.read_text().replace("restrict_oom_score_adj = false", "restrict_oom_score_adj = true"))


def _put_programs(root: Path, node: Path) -> None:
    shutil.copy2(node, root / "usr/bin/node")
    for name in NODE_PROGRAMS:
        (root / "usr/bin" / name).symlink_to("node")
    (root / "kind/version").write_text(f"v{KUBERNETES_VERSION}")
