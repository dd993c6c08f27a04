"""Objects of a tenant, as large as they may be: the operator that starts among them does not take its memory for them.

A ConfigMap counts where relays run beside what a tenant may write, and carries the operator's label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from tests.support.fuzzing import peak_memory_bytes
from tests.support.operator.platform import Platform
from tests.support.operator.running_platform import RunPlatform
from tests.support.paths import ROOT

from delaytopic_api.documents import API_VERSION
from delaytopic_api.values import Quantity
from delaytopic_operator.kube.indexers import MANAGED

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes, pytest.mark.nightly]

CONFIG_MAPS = 300
LARGE = "y" * (900 << 10)
"""A ConfigMap may have 1 MiB."""
DELAY_TOPICS = 100
LABELS = {f"{'k' * 60}.{'k' * 60}.example/{number}-{'k' * 50}": "v" * 63 for number in range(3_000)}
"""Some 750 KiB, and as much again in the list of who manages them: etcd takes 1.5 MiB of an object."""


@pytest.fixture
def platform(run_platform: RunPlatform, monkeypatch: pytest.MonkeyPatch) -> Iterator[Platform]:
    """Run the operator as its image does."""
    image = (ROOT / "images/operator.Dockerfile").read_text()
    for name, value in re.findall(r"(MALLOC_\w+)=(\d+)", image):
        monkeypatch.setenv(name, value)
    with run_platform("large") as platform:
        yield platform


@pytest.mark.takes_long("makes 300 MiB of ConfigMaps")
def test_large_config_maps_with_the_operators_label_fit_its_memory_limit_when_it_starts_again(
    platform: Platform,
) -> None:
    for number in range(CONFIG_MAPS):
        document = {"metadata": {"name": f"large-{number}", "labels": MANAGED}, "data": {"x": LARGE}}
        platform.client.create(f"/api/v1/namespaces/{platform.team}/configmaps", document)

    assert_it_starts_again_within_its_memory(platform)


@pytest.mark.takes_long("makes 100 MiB of DelayTopics")
def test_delay_topics_with_as_many_labels_as_etcd_takes_fit_its_memory_limit_when_it_starts_again(
    platform: Platform,
) -> None:
    platform.operator.stop_whatever_happens()
    for number in range(DELAY_TOPICS):
        spec = {"delayClassName": "none-such", "source": {"topic": f"s-{number}"}, "target": {"topic": f"t-{number}"}}
        document = {"metadata": {"name": f"large-{number}", "labels": LABELS}, "spec": spec}
        path = f"/apis/{API_VERSION}/namespaces/{platform.team}/delaytopics"
        platform.client.create(path, {"apiVersion": API_VERSION, "kind": "DelayTopic", **document})

    assert_it_starts_again_within_its_memory(platform)


def assert_it_starts_again_within_its_memory(platform: Platform) -> None:
    """Assert that it serves others then, with a quarter of the memory that the chart gives it left."""
    platform.operator.stop_whatever_happens()
    platform.operator.start().wait_until("leader")
    platform.apply_topic("later")
    platform.await_condition("later", "TopicsReady", seconds=120)

    values = yaml.safe_load((ROOT / "charts/delaytopic/values.yaml").read_text())
    limit_bytes = Quantity(values["resources"]["limits"]["memory"]).value
    assert peak_memory_bytes(platform.operator.child.pid) < limit_bytes * 3 // 4
