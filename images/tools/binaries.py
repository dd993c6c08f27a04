"""Programs built with Go once and kept outside the checkout: a real Kubernetes control plane, Helm, and an S3 server.

`make prepare` builds them ahead of the tests: ten minutes on two cores, then nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from images.tools.go_builds import (
    BUILD_FLAGS,
    KUBERNETES_VERSION,
    ProgramsMissingError,
    Report,
    fingerprint,
    linked_version,
    print_progress,
    program_folder,
    run_go,
)
from images.tools.once import made_once

HELM_VERSION: Final = "4.0.4"
HELM_3_VERSION: Final = "3.19.4"
S3_VERSION: Final = "1.8.0"
PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_SOURCES = Path(__file__).with_name("programs")


@dataclass(frozen=True, slots=True)
class Programs:
    """A folder with the programs of the control plane and kubectl, each by its own name."""

    directory: Path

    def path(self, name: str) -> Path:
        """Return the path of one of `PROGRAMS`."""
        return self.directory / name


def kubernetes_programs(report: Report = print_progress, *, build: bool = True) -> Programs:
    """Return the control plane's programs; build them when this machine has none of this version, unless told not to.

    Raises ProgramsMissingError without Go or when they may not be built, and ProgramsNotBuiltError.
    """
    folder = program_folder(f"{KUBERNETES_VERSION}-{fingerprint(*_kubernetes_inputs())}")

    def compiled(into: Path) -> None:
        command = ["build", *BUILD_FLAGS, "-ldflags", linked_version(), "-v", "-o", str(into / "kubernetes"), "."]
        run_go(command, f"Kubernetes {KUBERNETES_VERSION}", report, folder=_SOURCES)
        for name in PROGRAMS:
            (into / name).symlink_to("kubernetes")

    return Programs(_made(folder, compiled, f"Kubernetes {KUBERNETES_VERSION}", build))


def helm_program(report: Report = print_progress, version: str = HELM_VERSION, *, build: bool = True) -> Path:
    """Return the `helm` command, of Helm 4 or 3; build it when this machine has none of this version.

    Raises as `kubernetes_programs`.
    """
    module = f"helm.sh/helm/v{version.partition('.')[0]}/cmd/helm@v{version}"

    def compiled(into: Path) -> None:
        command = ["install", *BUILD_FLAGS, "-ldflags", _known_to_helm(version), "-v", module]
        run_go(command, f"Helm {version}", report, environment={"GOBIN": str(into)})

    folder = program_folder(f"helm-{version}-{fingerprint(module, _known_to_helm(version))}")
    return _made(folder, compiled, f"Helm {version}", build) / "helm"


def s3_program(report: Report = print_progress, *, build: bool = True) -> Path:
    """Return `versitygw`, an S3 server over a folder; build it when this machine has none, unless told not to.

    Raises as `kubernetes_programs`.
    """
    module = f"github.com/versity/versitygw/cmd/versitygw@v{S3_VERSION}"

    def compiled(into: Path) -> None:
        command = ["install", *BUILD_FLAGS, "-ldflags", "-s -w", "-v", module]
        run_go(command, f"versitygw {S3_VERSION}", report, environment={"GOBIN": str(into)})

    folder = program_folder(f"versitygw-{S3_VERSION}-{fingerprint(module)}")
    return _made(folder, compiled, f"versitygw {S3_VERSION}", build) / "versitygw"


def _made(folder: Path, compiled: Callable[[Path], None], what: str, build: bool) -> Path:
    """Return a folder of programs that is there, or is compiled now if that is allowed."""
    if not build and not folder.is_dir():
        raise ProgramsMissingError(f"{what} is not built yet: run make prepare")
    return made_once(folder, compiled)


def _known_to_helm(version: str) -> str:
    """Linker flags: which Kubernetes `helm template` renders for unless told, else one of years ago."""
    major, minor, _ = KUBERNETES_VERSION.split(".")
    package = "helm.sh/helm/v3/pkg/chartutil" if version.startswith("3.") else "helm.sh/helm/v4/pkg/chart/common"
    return f"-s -w -X {package}.k8sVersionMajor={major} -X {package}.k8sVersionMinor={minor}"


def _kubernetes_inputs() -> Iterator[str]:
    for name in ("main.go", "go.mod", "go.sum"):
        yield (_SOURCES / name).read_text(encoding="utf-8")
    yield linked_version()
