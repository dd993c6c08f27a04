"""The operator's client against a real API server: what it writes, what is refused and how it says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from playground.kube.control_plane import ControlPlane
from tests.cluster.fixtures import MakeNamespace
from tests.support.operator.documents import config_map, delay_topic
from tests.support.relay.process import wait_for

from delaytopic_operator.errors import (
    ApiServerForbidden,
    Conflict,
    NamespaceTerminating,
    ObjectRejected,
    OperatorError,
)
from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.kube.errors import KindNotServed, ObjectGone
from delaytopic_operator.kube.transport import Document
from delaytopic_operator.model import kinds

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

MANAGER = "delaytopic-operator"


class Answer:
    """A sink that notes the names it is told."""

    def __init__(self) -> None:
        self.put_names: list[str] = []
        self.removed_names: list[str] = []

    def written(self, document: Document) -> None:
        self.put_names.append(document["metadata"]["name"])

    def deleted(self, document: Document) -> None:
        self.removed_names.append(document["metadata"]["name"])


def deployment(namespace: str, name: str = "relay") -> Document:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "relay", "image": "relay"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def test_whatever_character_an_object_has_it_is_written_as_it_is(kube: KubeApi, namespace: str) -> None:
    # Given every character of the first plane, and the first and last of each further one
    planes = [chr(plane << 16 | low) for plane in range(1, 17) for low in (*range(50), *range(0xFFB0, 0x10000))]
    characters = "".join(chr(code) for code in range(1, 0x10000) if not 0xD800 <= code < 0xE000) + "".join(planes)
    in_words = 'a pair in words: \\ud83d\\ude00 "'

    written = kube.apply(config_map(namespace, a=characters, b=in_words), MANAGER)

    assert written["data"] == {"a": characters, "b": in_words}


def test_what_is_applied_twice_is_written_once(kube: KubeApi, namespace: str) -> None:
    first = kube.apply(config_map(namespace, a="1"), MANAGER)

    second = kube.apply(config_map(namespace, a="1"), MANAGER)

    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert kube.get(kinds.CONFIG_MAP, namespace, "one") == second


def test_a_field_that_is_applied_no_more_goes(kube: KubeApi, namespace: str) -> None:
    kube.apply(config_map(namespace, a="1", b="2"), MANAGER)

    assert kube.apply(config_map(namespace, a="1"), MANAGER)["data"] == {"a": "1"}


def test_a_field_of_another_manager_is_a_conflict_unless_forced(kube: KubeApi, namespace: str) -> None:
    kube.apply(config_map(namespace, a="theirs"), "somebody")

    with pytest.raises(Conflict, match=r'patch configmaps .*/one: .*"somebody"'):
        kube.apply(config_map(namespace, a="ours"), MANAGER, force=False)

    assert kube.apply(config_map(namespace, a="ours"), MANAGER)["data"] == {"a": "ours"}


def test_status_and_object_are_written_apart(kube: KubeApi, namespace: str) -> None:
    kube.apply(delay_topic(namespace), "people")
    status = delay_topic(namespace) | {"status": {"observedGeneration": 1}}
    del status["spec"]

    written = kube.apply_status(status, "delaytopic-operator-status")

    assert written["status"]["observedGeneration"] == 1
    assert written["spec"]["target"]["topic"] == "reminders"


def test_the_status_of_an_object_that_is_gone_is_not_written(kube: KubeApi, namespace: str) -> None:
    with pytest.raises(ObjectGone):
        kube.apply_status(delay_topic(namespace) | {"status": {}}, MANAGER)


def test_a_document_with_a_uid_never_makes_a_new_object(kube: KubeApi, namespace: str) -> None:
    made = kube.apply(config_map(namespace), MANAGER)
    kube.delete(kinds.CONFIG_MAP, namespace, "one")
    known = config_map(namespace)
    known["metadata"]["uid"] = made["metadata"]["uid"]

    with pytest.raises(Conflict):
        kube.apply(known, MANAGER)

    assert kube.get(kinds.CONFIG_MAP, namespace, "one") is None


def test_two_that_replace_what_they_read_do_not_overwrite_each_other(kube: KubeApi, namespace: str) -> None:
    read = kube.create(config_map(namespace, a="1"))
    kube.replace(read | {"data": {"a": "2"}})

    with pytest.raises(Conflict, match="the object has been modified"):
        kube.replace(read | {"data": {"a": "3"}})


def test_an_object_is_made_once(kube: KubeApi, namespace: str) -> None:
    kube.create(config_map(namespace))

    with pytest.raises(Conflict, match="already exists"):
        kube.create(config_map(namespace))


def test_replicas_are_set_through_scale(kube: KubeApi, namespace: str) -> None:
    kube.apply(deployment(namespace), MANAGER)
    kube.apply(delay_topic(namespace), "people")

    kube.scale(kinds.DEPLOYMENT, namespace, "relay", 3, "delaytopic-operator-scale")
    kube.scale(kinds.DELAY_TOPIC, namespace, "reminders", 2, "delaytopic-operator-scale")

    scaled = kube.get(kinds.DEPLOYMENT, namespace, "relay")
    topic = kube.get(kinds.DELAY_TOPIC, namespace, "reminders")
    assert scaled is not None
    assert topic is not None
    assert (scaled["spec"]["replicas"], topic["spec"]["relay"]["replicas"]) == (3, 2)


def test_a_finalizer_is_one_managers_and_taken_away_by_it_alone(kube: KubeApi, namespace: str) -> None:
    manager = "delaytopic-operator-finalizer"
    made = kube.apply(delay_topic(namespace), "people")
    names = {name: made["metadata"][name] for name in ("namespace", "name", "uid")}
    bare: Document = {"apiVersion": made["apiVersion"], "kind": made["kind"]}

    held = kube.apply(bare | {"metadata": names | {"finalizers": ["delaytopic.dev/drain"]}}, manager)
    kube.delete(kinds.DELAY_TOPIC, namespace, "reminders")
    going = kube.get(kinds.DELAY_TOPIC, namespace, "reminders")
    assert going is not None
    let_go = kube.apply(bare | {"metadata": names}, manager)

    assert held["metadata"]["finalizers"] == ["delaytopic.dev/drain"]
    assert held["spec"] == made["spec"]
    assert "deletionTimestamp" in going["metadata"]
    assert "finalizers" not in let_go["metadata"]
    assert kube.get(kinds.DELAY_TOPIC, namespace, "reminders") is None


def test_merge_patches_and_json_patches_are_told_apart(kube: KubeApi, namespace: str) -> None:
    kube.create(config_map(namespace, a="1"))

    kube.patch(kinds.CONFIG_MAP, namespace, "one", {"data": {"b": "2"}}, MANAGER)
    patched = kube.patch(kinds.CONFIG_MAP, namespace, "one", [{"op": "remove", "path": "/data/a"}], MANAGER)

    assert patched["data"] == {"b": "2"}


def test_what_is_gone_already_may_be_deleted(kube: KubeApi, namespace: str) -> None:
    kube.delete(kinds.CONFIG_MAP, namespace, "never-was")


def test_only_the_very_object_that_was_meant_is_deleted(kube: KubeApi, namespace: str) -> None:
    kube.create(config_map(namespace))

    with pytest.raises(Conflict):
        kube.delete(kinds.CONFIG_MAP, namespace, "one", uid="00000000-0000-0000-0000-000000000000")

    assert kube.get(kinds.CONFIG_MAP, namespace, "one") is not None


def test_lists_come_whole_from_many_pages_and_say_what_is_in_them(
    kube: KubeApi, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delaytopic_operator.kube.client.LARGE_OBJECTS_PAGE_SIZE", 3)
    names = [f"one-{number}" for number in range(7)]
    for name in names:
        document = config_map(namespace, name)
        document["metadata"]["labels"] = {"of": "test"}
        kube.create(document)

    pages = list(kube.pages(kinds.CONFIG_MAP, namespace, {"of": "test"}))

    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    found = [item for page in pages for item in page.items]
    assert sorted(item["metadata"]["name"] for item in found) == names
    assert {(item["apiVersion"], item["kind"]) for item in found} == {("v1", "ConfigMap")}


def test_objects_are_listed_by_field(kube: KubeApi, namespace: str) -> None:
    kube.apply(delay_topic(namespace, "one"), "people")
    kube.apply(delay_topic(namespace, "two"), "people")

    found = kube.list(kinds.DELAY_TOPIC, namespace, fields={"spec.target.topic": "two"})

    assert [topic["metadata"]["name"] for topic in found] == ["two"]


def test_writes_are_told_to_the_sink(
    control_plane: ControlPlane, make_kube: Callable[..., KubeApi], namespace: str
) -> None:
    heard = Answer()
    kube = make_kube(control_plane.kubeconfig, heard)

    kube.apply(config_map(namespace), MANAGER)
    kube.apply(deployment(namespace), MANAGER)
    kube.scale(kinds.DEPLOYMENT, namespace, "relay", 0, MANAGER)
    kube.delete(kinds.CONFIG_MAP, namespace, "one")

    assert heard.put_names == ["one", "relay"]


def test_requests_are_counted_in_the_words_of_rbac(
    kube: KubeApi, namespace: str, requests: Counter[tuple[str, str, str]]
) -> None:
    kube.apply(delay_topic(namespace), "people")
    kube.apply_status(delay_topic(namespace) | {"status": {}}, MANAGER)
    kube.get(kinds.CONFIG_MAP, namespace, "none")

    assert requests == {
        ("patch", "delaytopics", "201"): 1,
        ("patch", "delaytopics/status", "200"): 1,
        ("get", "configmaps", "404"): 1,
    }


# -- refusals


def test_a_user_without_the_right_is_told_which_one(
    control_plane: ControlPlane, make_kube: Callable[..., KubeApi], namespace: str
) -> None:
    kube = make_kube(control_plane.kubeconfig_for_user("limited"))

    with pytest.raises(ApiServerForbidden, match=r"^patch configmaps .*cannot patch resource .*Role must allow it$"):
        kube.apply(config_map(namespace), MANAGER)
    with pytest.raises(ApiServerForbidden, match=r"^list deployments: .*cannot list resource"):
        kube.list(kinds.DEPLOYMENT)


def test_credentials_that_do_not_count_are_no_passing_problem(
    control_plane: ControlPlane, make_kube: Callable[..., KubeApi], namespace: str
) -> None:
    control_plane.client.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "dismissed"}})
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "dismissed")
    control_plane.client.delete(f"/api/v1/namespaces/{namespace}/serviceaccounts/dismissed")

    def refused() -> OperatorError | None:
        try:
            make_kube(kubeconfig).get(kinds.CONFIG_MAP, namespace, "one")
        except OperatorError as error:
            return error
        return None

    error = wait_for(lambda: refused() if "credentials" in str(refused()) else None)
    assert isinstance(error, ApiServerForbidden)


def test_an_object_against_its_schema_is_rejected_with_the_field(kube: KubeApi, namespace: str) -> None:
    wrong = delay_topic(namespace)
    wrong["spec"]["source"] = {}

    with pytest.raises(ObjectRejected, match=r"spec\.source\.topic"):
        kube.apply(wrong, MANAGER)


def test_a_policy_of_the_namespace_is_no_missing_right(kube: KubeApi, make_namespace: MakeNamespace) -> None:
    namespace = make_namespace(labels={"pod-security.kubernetes.io/enforce": "restricted"})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": "one"},
        "spec": {"containers": [{"name": "relay", "image": "relay"}]},
    }

    with pytest.raises(ObjectRejected, match="violates PodSecurity"):
        kube.create(pod)


def test_a_quota_is_no_missing_right(kube: KubeApi, control_plane: ControlPlane, namespace: str) -> None:
    quota = {"metadata": {"name": "quota"}, "spec": {"hard": {"count/deployments.apps": "0"}}}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    control_plane.client.create(path, quota)
    wait_for(lambda: control_plane.client.get(f"{path}/quota").get("status", {}).get("hard"))

    with pytest.raises(ObjectRejected, match="exceeded quota"):
        kube.apply(deployment(namespace), MANAGER)


def test_nothing_is_made_in_a_namespace_that_ends(
    kube: KubeApi, control_plane: ControlPlane, make_namespace: MakeNamespace
) -> None:
    namespace = make_namespace()
    held = delay_topic(namespace)
    held["metadata"]["finalizers"] = ["delaytopic.dev/drain"]
    kube.create(held)
    control_plane.client.delete(f"/api/v1/namespaces/{namespace}")

    with pytest.raises(NamespaceTerminating, match=f"namespace {namespace} is being deleted"):
        kube.apply(config_map(namespace), MANAGER)

    kube.patch(kinds.DELAY_TOPIC, namespace, "reminders", {"metadata": {"finalizers": None}}, MANAGER)


def test_nothing_is_made_in_a_namespace_that_is_not_there(kube: KubeApi) -> None:
    with pytest.raises(NamespaceTerminating, match="namespace nowhere does not exist"):
        kube.create(config_map("nowhere"))


def test_a_kind_that_is_not_served_is_not_taken_for_an_object_that_is_gone(kube: KubeApi, namespace: str) -> None:
    with pytest.raises(KindNotServed, match="KafkaTopic"):
        kube.get(kinds.KAFKA_TOPIC, namespace, "one")

    assert [kube.serves(kind) for kind in (kinds.KAFKA_TOPIC, kinds.DELAY_TOPIC, kinds.POD)] == [False, True, True]
