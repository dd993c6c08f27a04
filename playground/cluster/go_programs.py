"""kind and the programs of a node, built with Go from their modules once and kept outside the checkout.

All functions raise ProgramsMissingError without Go, and ProgramsNotBuiltError.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from images.tools.go_builds import (
    BUILD_FLAGS,
    KUBERNETES_VERSION,
    Report,
    fingerprint,
    linked_version,
    program_folder,
    run_go,
)
from images.tools.once import made_once
from playground.cluster.commands import run

KIND_VERSION: Final = "0.33.0"
NODE_PROGRAMS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubeadm",
    "kubectl",
    "kubelet",
)
_SOURCES = Path(__file__).with_name("programs")
_KIND_MODULE = f"sigs.k8s.io/kind@v{KIND_VERSION}"


def node_program(report: Report) -> Path:
    """The binary that is each of `NODE_PROGRAMS`, by the name that it is called by."""
    return _built("node", f"Kubernetes {KUBERNETES_VERSION} for a node", report)


def coredns_program(report: Report) -> Path:
    """CoreDNS."""
    return _built("coredns", "CoreDNS", report)


def kind_program(report: Report) -> Path:
    """The `kind` command."""
    return _kind_folder(report) / "kind"


def kind_node_files(report: Report) -> Path:
    """A folder of what kind's own node images have in them: units of systemd, settings, the entrypoint."""
    return _kind_folder(report) / "node-files"


def program_inputs(name: str) -> Iterator[str]:
    """Everything that `node` or `coredns` is made from."""
    for file in ("main.go", "go.mod", "go.sum"):
        yield (_SOURCES / name / file).read_text(encoding="utf-8")
    yield linked_version()


def _built(name: str, what: str, report: Report) -> Path:
    def build(into: Path) -> None:
        command = ["build", *BUILD_FLAGS, "-ldflags", linked_version(), "-v", "-o", str(into / name), "."]
        run_go(command, what, report, folder=_SOURCES / name)

    return made_once(program_folder(f"{name}-{fingerprint(*program_inputs(name))}"), build) / name


def _kind_folder(report: Report) -> Path:
    def build(into: Path) -> None:
        command = ["install", *BUILD_FLAGS, "-ldflags", "-s -w", "-v", _KIND_MODULE]
        run_go(command, f"kind {KIND_VERSION}", report, environment={"GOBIN": str(into)})
        module = json.loads(run("go", "mod", "download", "-json", _KIND_MODULE))["Dir"]
        shutil.copytree(f"{module}/images/base/files", into / "node-files", copy_function=shutil.copyfile)

    return made_once(program_folder(f"kind-{KIND_VERSION}-{fingerprint(_KIND_MODULE)}"), build)
