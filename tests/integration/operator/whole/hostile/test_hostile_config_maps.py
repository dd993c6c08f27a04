"""ConfigMaps of a tenant that carry the operator's label: as large as they may be, they do not take its memory."""

from __future__ import annotations

import re

import pytest
import yaml
from tests.support.fuzzing import peak_memory_bytes
from tests.support.operator.running_platform import RunPlatform
from tests.support.paths import ROOT

from delaytopic_api.values import Quantity
from delaytopic_operator.kube.indexers import MANAGED

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

CONFIG_MAPS = 300
LARGE = "y" * (900 << 10)
"""A ConfigMap may have 1 MiB."""


def memory_limit_bytes() -> int:
    """Return the limit that the chart gives the operator."""
    values = yaml.safe_load((ROOT / "charts/delaytopic/values.yaml").read_text())
    return Quantity(values["resources"]["limits"]["memory"]).value


@pytest.mark.takes_long("makes 300 MiB of ConfigMaps")
def test_large_config_maps_with_the_operators_label_fit_its_memory_limit_when_it_starts_again(
    run_platform: RunPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The operator runs as its image does.
    image = (ROOT / "images/operator.Dockerfile").read_text()
    for name, value in re.findall(r"(MALLOC_\w+)=(\d+)", image):
        monkeypatch.setenv(name, value)
    with run_platform("large") as platform:
        for number in range(CONFIG_MAPS):
            document = {"metadata": {"name": f"large-{number}", "labels": MANAGED}, "data": {"x": LARGE}}
            platform.client.create(f"/api/v1/namespaces/{platform.team}/configmaps", document)
        platform.operator.stop_whatever_happens()

        platform.operator.start().wait_until("leader")
        platform.apply_topic("later")
        platform.await_condition("later", "TopicsReady", seconds=120)

        assert peak_memory_bytes(platform.operator.child.pid) < memory_limit_bytes() * 3 // 4
