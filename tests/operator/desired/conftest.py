"""The real API server, for the tests that need one."""

from __future__ import annotations

from tests.cluster.fixtures import (
    control_plane,
    kubernetes_programs,
    make_namespace,
    namespace,
    node,
    pod_namespace,
)

__all__ = ["control_plane", "kubernetes_programs", "make_namespace", "namespace", "node", "pod_namespace"]
