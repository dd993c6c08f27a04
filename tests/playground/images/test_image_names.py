"""Images have the names by which the chart, the manifests and the Kafka launcher know them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from charts.tools.places import CHART
from images.install import BILL_OF_MATERIALS, USER
from images.tools.catalogue import IMAGE_LIST, SBOM_FILE
from playground.images.build import checkout
from playground.images.errors import TestImagesError
from playground.images.kafka.start import broker_settings, cluster_node
from playground.images.recipes import KAFKA_REFERENCE
from playground.platform.installed_platform import MANIFESTS
from playground.without_registry.roots import REDIS

from delaytopic_local.servers.kafka_jars import KAFKA_VERSION
from delaytopic_operator.resources.audits.pod import IMAGE_GROUP


def test_the_chart_runs_the_images_that_are_built() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

    assert {image.name: image.repository for image in IMAGE_LIST} == {
        "operator": values["image"]["repository"],
        **{name: values[name]["image"]["repository"] for name in ("relay", "gateway", "audit")},
    }


def test_the_manifests_run_the_images_that_are_built() -> None:
    images = {
        container["image"]
        for file in MANIFESTS.glob("*.yaml")
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        if document["kind"] == "StatefulSet"
        for kind in ("initContainers", "containers")
        for container in document["spec"]["template"]["spec"][kind]
    }

    assert images == {KAFKA_REFERENCE, REDIS.reference}
    assert KAFKA_VERSION.startswith(KAFKA_REFERENCE.rpartition(":")[2])


def test_the_process_may_write_to_the_audits_volume() -> None:
    assert USER[1] == IMAGE_GROUP


def test_the_bill_of_materials_is_where_it_is_read() -> None:
    assert str(BILL_OF_MATERIALS) == SBOM_FILE


def test_settings_of_a_file_are_added_to_those_of_the_broker(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# comment=1\n\nlog.message.timestamp.type = LogAppendTime\n", encoding="utf-8")

    settings = broker_settings({"KAFKA_ADVERTISED": "kafka.infrastructure:9092", "KAFKA_SETTINGS": str(file)})

    assert settings == {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "advertised.listeners": "PLAINTEXT://kafka.infrastructure:9092",
        "log.message.timestamp.type": "LogAppendTime",
    }


def test_a_broker_of_several_finds_its_place_by_its_name() -> None:
    [kafka] = [
        document
        for document in yaml.safe_load_all((MANIFESTS / "kafka.yaml").read_text(encoding="utf-8"))
        if document["kind"] == "StatefulSet"
    ]
    [container] = kafka["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each.get("value", "") for each in container["env"]}
    names = [f"{kafka['metadata']['name']}-{number}" for number in range(kafka["spec"]["replicas"])]

    nodes = [cluster_node({**environment, "KAFKA_NODE": name}) for name in names]

    assert [node.id for node in nodes] == [1, 2, 3]
    assert nodes[0].voters == ",".join(
        f"{node.id}@{name}.kafka-nodes.infrastructure:9093" for node, name in zip(nodes, names, strict=True)
    )


def test_a_commit_that_is_not_here_is_named() -> None:
    with pytest.raises(TestImagesError, match="there is no commit no-such-commit here"), checkout("no-such-commit"):
        pytest.fail("there is such a commit")
