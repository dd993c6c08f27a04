"""The control plane and the node, for tests of themselves."""

from __future__ import annotations

from tests.cluster.fixtures import (
    control_plane,
    helm,
    helm_program,
    kubernetes_programs,
    make_namespace,
    namespace,
    node,
    pod_namespace,
)

__all__ = [
    "control_plane",
    "helm",
    "helm_program",
    "kubernetes_programs",
    "make_namespace",
    "namespace",
    "node",
    "pod_namespace",
]
