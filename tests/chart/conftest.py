"""Both Helms that the chart is for, and what checks Prometheus rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chart.helm import ChartHelm
from tests.chart.promtool import promtool_program
from tests.cluster import binaries
from tests.cluster.fixtures import built, control_plane, kubernetes_programs, make_namespace, namespace

__all__ = ["control_plane", "kubernetes_programs", "make_namespace", "namespace"]

HELM_3 = "3.19.4"


@pytest.fixture(scope="module", params=[binaries.HELM_VERSION, HELM_3], ids=["helm-4", "helm-3"])
def any_helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChartHelm:
    """Each version in turn."""
    program = built(request, lambda: binaries.helm_program(version=request.param))
    return ChartHelm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChartHelm:
    """The newer one, for what does not depend on the version."""
    program = built(request, binaries.helm_program)
    return ChartHelm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def promtool(request: pytest.FixtureRequest) -> Path:
    """Prometheus' own checker of rules."""
    return built(request, promtool_program)
