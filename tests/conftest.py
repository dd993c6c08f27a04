"""For all tests: the servers they share, how a run behaves, and how hypothesis does."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from tests.cluster.fixtures import helm_program, make_namespace, namespace, node, own_control_plane, pod_namespace
from tests.harness import plugin
from tests.harness.fixtures import control_plane, kafka, kubernetes_programs, own_kafka, own_redis, redis

__all__ = [
    "control_plane",
    "helm_program",
    "kafka",
    "kubernetes_programs",
    "make_namespace",
    "namespace",
    "node",
    "own_control_plane",
    "own_kafka",
    "own_redis",
    "pod_namespace",
    "redis",
]

# How long an example takes says nothing on a busy machine. Each run draws others, so that few are enough.
settings.register_profile("any-machine", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


def pytest_configure(config: pytest.Config) -> None:
    plugin.register(config)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return plugin.workers(config)
