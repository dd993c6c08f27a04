"""The pod of `helm test`, rendered."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from playground.kube.helm import HelmError
from tests.support.chart.helm import EVERYTHING, ChartHelm, named, of_kind

from delaytopic_cli.commands.trial import trial

pytestmark = pytest.mark.integration

NAME = "delaytopic-test"


def _pod(helm: ChartHelm) -> dict[str, Any]:
    return named(helm.template("--values", str(EVERYTHING)), "Pod", NAME)


def test_there_is_none_unless_its_login_is_named(helm: ChartHelm) -> None:
    assert of_kind(helm.template("--set", "test.source=a,test.target=b"), "Pod") == []


@pytest.mark.parametrize("missing", ["source", "target"])
def test_a_topic_that_is_not_named_is_asked_for(helm: ChartHelm, missing: str) -> None:
    values = {"test.kafkaConfig.secret": "kafka", "test.source": "a", "test.target": "b", f"test.{missing}": ""}

    with pytest.raises(HelmError, match=rf"test\.{missing}: name the {missing} topic"):
        helm.template("--set", ",".join(f"{name}={value}" for name, value in values.items()))


def test_it_runs_when_it_is_asked_for_and_stays_until_the_next_time(helm: ChartHelm) -> None:
    pod = _pod(helm)

    assert pod["metadata"]["annotations"] == {
        "helm.sh/hook": "test",
        "helm.sh/hook-delete-policy": "before-hook-creation",
    }
    assert (pod["spec"]["restartPolicy"], pod["spec"]["automountServiceAccountToken"]) == ("Never", False)


def test_the_values_become_a_command_that_there_is(helm: ChartHelm) -> None:
    (container,) = _pod(helm)["spec"]["containers"]

    assert container["image"] == "registry.example/mirror/delaytopic/gateway:0.1.0"
    assert (container["command"], container["args"]) == (
        ["delaytopic"],
        [
            "trial",
            "shop.trial.delayed",
            "--target=shop.trial",
            "--after=10s",
            "--kafka-config=/etc/delaytopic/kafka/login.yaml",
        ],
    )
    known = CliRunner().invoke(trial, ["--help"]).output
    assert [each for each in container["args"][2:] if each.partition("=")[0] not in known] == []


def test_it_mounts_its_own_login(helm: ChartHelm) -> None:
    spec = _pod(helm)["spec"]

    assert spec["volumes"][0] == {"name": "kafka", "secret": {"secretName": "trial-kafka"}}
    assert spec["containers"][0]["volumeMounts"][0] == {
        "name": "kafka",
        "mountPath": "/etc/delaytopic/kafka",
        "readOnly": True,
    }


def test_it_runs_where_gateways_run(helm: ChartHelm) -> None:
    spec = _pod(helm)["spec"]

    assert (spec["nodeSelector"], spec["tolerations"]) == ({"pool": "web"}, [{"key": "web", "operator": "Exists"}])
