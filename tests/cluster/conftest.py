"""Helm with the control plane, for tests of itself."""

from __future__ import annotations

from tests.cluster.fixtures import helm

__all__ = ["helm"]
