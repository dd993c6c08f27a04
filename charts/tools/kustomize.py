"""Edge: the Kustomize base: the chart rendered with its own values, and the CRDs as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from charts.tools.places import CHART, ROOT

BASE: Final = ROOT / "deploy/kustomize/base"
NAMESPACE: Final = "delaytopic-system"
OLDEST_KUBERNETES: Final = "1.31.0"
_HEAD: Final = "# Generated from charts/delaytopic by `python -m charts.tools`; change it in an overlay.\n"
_KUSTOMIZATION: Final = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: delaytopic-system
resources:
  - namespace.yaml
  - ../../../crds
  - operator.yaml
"""
_NAMESPACE: Final = """\
apiVersion: v1
kind: Namespace
metadata:
  name: delaytopic-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
"""


def kustomize_base(helm: Path) -> dict[Path, str]:
    """Path and text of each file of the base; `helm` is the command."""
    return {
        BASE / "kustomization.yaml": _HEAD + _KUSTOMIZATION,
        BASE / "namespace.yaml": _HEAD + _NAMESPACE,
        BASE / "operator.yaml": _HEAD + rendered(helm, "--set", "crds.install=false"),
    }


def rendered(helm: Path, *options: str) -> str:
    """The chart as text, without what only Helm reads; raises CalledProcessError."""
    place = ("--namespace", NAMESPACE, "--kube-version", OLDEST_KUBERNETES)
    command = [str(helm), "template", "delaytopic", str(CHART), *place, *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = (line for line in text.splitlines(keepends=True) if "helm.sh/" not in line)
    return "".join(lines).replace("app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kustomize")
