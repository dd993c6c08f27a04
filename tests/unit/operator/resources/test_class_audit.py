"""The Deployment that audits all DelayTopics of a class: its command line, its documents, its places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from tests.support.operator.routes import Route, route
from tests.unit.operator.resources.pod_security import violations

from delaytopic_api.documents import DelayTopic
from delaytopic_cli.audit.commands import run
from delaytopic_cli.audit.documents import audited_topics, kafka_of
from delaytopic_operator.resources import class_audit_objects, is_class_audit
from delaytopic_operator.resources.identity import Document

URL = {"schedule": "0 * * * *", "ledger": "s3a://audits/ledger"}
VOLUME = {"schedule": "0 * * * *", "volume": {"persistentVolumeClaim": {"claimName": "audits"}}}


def given(audit: dict[str, Any] = URL, every: str | None = "5m") -> Route:
    """A DelayTopic of a class that asks for one audit of all; `audit` is the operator's configuration."""
    return route(config={"audit": audit}, of_class={"audit": {"every": every} if every is not None else {}})


def named(of: Route, *names: str) -> list[DelayTopic]:
    """The same DelayTopic under other names."""
    metadata = of.topic.metadata
    return [of.topic.model_copy(update={"metadata": metadata.model_copy(update={"name": name})}) for name in names]


def objects(of: Route, *names: str, secrets_version: str = "1") -> list[Document]:
    """All that is made for the class with DelayTopics of these names."""
    assert of.delay_class is not None
    return class_audit_objects(of.delay_class, named(of, *names), secrets_version, of.config)


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    return [each for each in documents if each["kind"] == kind]


def pod(documents: list[Document]) -> Document:
    (deployment,) = of_kind(documents, "Deployment")
    template: Document = deployment["spec"]["template"]
    return template


def container(documents: list[Document]) -> Document:
    (only,) = pod(documents)["spec"]["containers"]
    found: Document = only
    return found


def options(documents: list[Document], files: Path) -> dict[str, Any]:
    """Return what the real command makes of the arguments; `files` is where what is mounted really is."""
    places = {"/etc/delaytopic/config": files / "config", "/etc/delaytopic/audit": files / "audit"}
    for place in places.values():
        place.mkdir()
    sources = pod(documents)["spec"]["volumes"][1]["projected"]["sources"]
    of_documents = {source["configMap"]["name"] for source in sources}
    for config_map in of_kind(documents, "ConfigMap"):
        of = "audit" if config_map["metadata"]["name"] in of_documents else "config"
        for name, text in config_map["data"].items():
            (files / of / name).write_text(text, encoding="utf-8")
    words = container(documents)["args"]
    for inside, outside in places.items():
        words = [word.replace(inside, str(outside)) for word in words]
    assert words[:2] == ["audit", "run"]
    with click.Context(run) as parent:
        return run.make_context("run", words[2:], parent=parent).params


def test_the_command_is_one_that_delaytopic_has(tmp_path: Path) -> None:
    params = options(objects(given(VOLUME), "a"), tmp_path)

    told = {"name", "ledger", "output", "master", "memory", "every", "serve", "status_file", "exit_zero"}
    assert {name: value for name, value in params.items() if name in told} == {
        "name": None,
        "ledger": "/var/lib/delaytopic/ledger/classes/standard",
        "output": "/var/lib/delaytopic/reports",
        "master": "local[*]",
        "memory": "1024m",
        "every": "5m",
        "serve": "0.0.0.0:8080",
        "status_file": None,
        "exit_zero": True,
    }


def test_the_documents_are_those_of_all_delay_topics_and_their_class(tmp_path: Path) -> None:
    of = given()

    params = options(objects(of, "b", "a"), tmp_path)

    names = sorted(each.name for each in audited_topics(params["file"], None))
    assert names == ["a", "b"]
    assert kafka_of(params["relay_config"]).bootstrap_servers == of.settings.connection.bootstrap_servers  # type: ignore[union-attr]


def test_many_delay_topics_are_in_several_config_maps_that_the_operator_keeps_in_memory(tmp_path: Path) -> None:
    names = [f"reminders-{number}" for number in range(400)]

    documents = objects(given(), *names)

    sizes = [sum(map(len, each["data"].values())) for each in of_kind(documents, "ConfigMap")]
    assert len(sizes) > 2
    assert max(sizes) < 64 << 10
    assert len(audited_topics(options(documents, tmp_path)["file"], None)) == 400


def test_a_delay_topic_that_the_class_refuses_by_now_is_left_out(tmp_path: Path) -> None:
    of = given()
    assert of.delay_class is not None
    (good, bad) = named(of, "good", "bad")
    source = bad.spec.source.model_copy(update={"topic": "others.a"})
    bad = bad.model_copy(update={"spec": bad.spec.model_copy(update={"source": source})})

    documents = class_audit_objects(of.delay_class, [bad, good], "1", of.config)

    assert [each.name for each in audited_topics(options(documents, tmp_path)["file"], None)] == ["good"]


def test_no_pod_starts_anew_for_a_delay_topic_more() -> None:
    one, two = objects(given(), "a"), objects(given(), "a", "b")

    assert of_kind(one, "Deployment") == of_kind(two, "Deployment")
    assert of_kind(one, "ConfigMap") != of_kind(two, "ConfigMap")


def test_a_pod_starts_anew_when_a_secret_changes() -> None:
    before, after = (objects(given(), "a", secrets_version=version) for version in "12")

    assert pod(before)["metadata"] != pod(after)["metadata"]


def test_its_pod_is_as_restricted_as_any() -> None:
    documents = objects(given(VOLUME), "a")

    assert violations(pod(documents)["spec"]) == []
    assert pod(documents)["spec"]["automountServiceAccountToken"] is False


def test_only_the_operator_reaches_it() -> None:
    (policy,) = of_kind(objects(given(), "a"), "NetworkPolicy")

    assert policy["spec"]["ingress"] == [
        {
            "from": [
                {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "delaytopic-system"}},
                    "podSelector": {
                        "matchLabels": {
                            "app.kubernetes.io/name": "delaytopic",
                            "app.kubernetes.io/component": "operator",
                        }
                    },
                }
            ],
            "ports": [{"protocol": "TCP", "port": 8080}],
        }
    ]
    labels = pod(objects(given(), "a"))["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_kubernetes_removes_it_with_the_class() -> None:
    owners = [each["metadata"]["ownerReferences"] for each in objects(given(), "a")]

    assert all(owner["kind"] == "DelayClass" and owner["controller"] for (owner,) in owners)


def test_it_has_the_whole_volume() -> None:
    mounts = [mount for mount in container(objects(given(VOLUME), "a"))["volumeMounts"] if mount["name"] == "ledger"]

    assert mounts == [{"name": "ledger", "mountPath": "/var/lib/delaytopic"}]


def test_an_account_of_the_operators_choice_is_not_made() -> None:
    documents = objects(given(URL | {"serviceAccount": "audits"}), "a")

    assert of_kind(documents, "ServiceAccount") == []
    assert pod(documents)["spec"]["serviceAccountName"] == "audits"


@pytest.mark.parametrize(
    ("of", "names"),
    [(given(audit={}), ["a"]), (given(), []), (given(every=None), ["a"])],
    ids=["the operator makes no audits", "no DelayTopic", "the class asks for none"],
)
def test_there_is_none(of: Route, names: list[str]) -> None:
    assert objects(of, *names) == []


def test_there_is_no_cron_job_beside_it() -> None:
    assert given().audit() == []


def test_each_operator_has_one_of_its_own() -> None:
    names = {
        each["metadata"]["name"]
        for namespace in ("one", "two")
        for each in of_kind(
            objects(route(config={"audit": URL, "namespace": namespace}, of_class={"audit": {"every": "5m"}}), "a"),
            "Deployment",
        )
    }

    assert len(names) == 2


def test_its_pods_are_those_of_its_deployment() -> None:
    (deployment,) = of_kind(objects(given(), "a"), "Deployment")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{deployment['metadata']['name']}-abc"}
    made = {"metadata": {"labels": {"pod-template-hash": "abc"}, "ownerReferences": [{**owner, "controller": True}]}}
    forged = {"metadata": {"labels": {"pod-template-hash": "abc"}}}

    assert is_class_audit(made, "standard", "delaytopic-system")
    assert not is_class_audit(made, "other", "delaytopic-system")
    assert not is_class_audit(forged, "standard", "delaytopic-system")
