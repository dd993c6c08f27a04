"""Both Helms that the chart is for, and what checks Prometheus rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from images.tools import binaries
from tests.harness.fixtures import prepared
from tests.support.chart.helm import ChartHelm
from tests.support.chart.promtool import promtool_program

HELMS = (
    pytest.param(binaries.HELM_VERSION, id="helm-4"),
    pytest.param(binaries.HELM_3_VERSION, id="helm-3", marks=pytest.mark.nightly),
)


@pytest.fixture(scope="module", params=HELMS)
def any_helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChartHelm:
    """Each version in turn; Helm 3 at night."""
    program = prepared(binaries.helm_program, version=request.param)
    return ChartHelm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> ChartHelm:
    """The newer one, for what does not depend on the version."""
    program = prepared(binaries.helm_program)
    return ChartHelm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Prometheus' own checker of rules."""
    return prepared(promtool_program)
