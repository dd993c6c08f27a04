"""A real API server that knows the project's kinds."""

from __future__ import annotations

from tests.cluster.fixtures import control_plane, kubernetes_programs, make_namespace, namespace

__all__ = ["control_plane", "kubernetes_programs", "make_namespace", "namespace"]
