"""Operators as real processes against a real API server: events come in, one leads, another takes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from playground.kube.control_plane import ControlPlane
from playground.kube.request_log import Call, by_verb
from tests.harness.names import unique
from tests.support.operator.documents import delay_topic
from tests.support.operator.process import OperatorProcess
from tests.support.relay.process import wait_for

from delaytopic_operator.kube.client import KubeApi
from delaytopic_operator.model import kinds

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

IN_PROGRESS = 'in_progress_start_seconds{delaytopic_name="reminders"'
RBAC = "/apis/rbac.authorization.k8s.io/v1"

MakeOperator = Callable[..., OperatorProcess]


@pytest.fixture(scope="module")
def watched(control_plane: ControlPlane) -> str:
    """A namespace whose DelayTopics `operator` looks after."""
    return new_namespace(control_plane)


@pytest.fixture(scope="module")
def other(control_plane: ControlPlane) -> str:
    """The namespace that `operator` runs in, and does not watch."""
    return new_namespace(control_plane)


def new_namespace(control_plane: ControlPlane) -> str:
    name = unique("shell")
    control_plane.client.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@pytest.fixture(scope="module")
def operator(
    control_plane: ControlPlane, watched: str, other: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One that leads; a DelayTopic of each namespace was there before it."""
    for namespace in (watched, other):
        path = f"/apis/delaytopic.dev/v1beta1/namespaces/{namespace}/delaytopics"
        control_plane.client.create(path, delay_topic(namespace, "there"))
    directory, settings = (
        tmp_path_factory.mktemp("operator"),
        {"watchNamespaces": [watched], "relayNamespaces": [watched]},
    )
    running = OperatorProcess(directory, "one", control_plane.kubeconfig, other, dict(settings))
    yield running.start().wait_until("leader")
    running.stop_whatever_happens()


def written(kube: KubeApi, namespace: str, name: str = "reminders") -> str | None:
    """Return the text that a recording reconciler wrote last."""
    found = kube.get(kinds.CONFIG_MAP, namespace, name)
    return None if found is None else found["data"]["write"]


def holder(control_plane: ControlPlane, namespace: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/delaytopic-operator"
    return str(control_plane.client.get(path)["spec"].get("holderIdentity", ""))


def bind_to_admin(control_plane: ControlPlane, subject: dict[str, str]) -> None:
    """Give somebody all rights."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    document = {"metadata": {"name": unique("shell")}, "subjects": [subject], "roleRef": role}
    control_plane.client.create(f"{RBAC}/clusterrolebindings", document)


def test_what_is_there_and_what_comes_and_goes_is_looked_at(
    operator: OperatorProcess, kube: KubeApi, watched: str
) -> None:
    wait_for(lambda: f"{watched}/there" in operator.passes(), operator.why)

    kube.apply(delay_topic(watched, "comes"), "people")
    wait_for(lambda: f"{watched}/comes" in operator.passes(), operator.why)
    kube.delete(kinds.DELAY_TOPIC, watched, "comes")

    wait_for(lambda: last_pass(operator, f"{watched}/comes")["seen"] is False, operator.why)
    assert operator.get("/livez") == "alive\n"


def last_pass(operator: OperatorProcess, key: str) -> dict[str, object]:
    return [line for line in operator.log_lines("pass") if line["delaytopic"] == key][-1]


def test_nothing_outside_of_the_namespaces_named_is_looked_at(
    operator: OperatorProcess, kube: KubeApi, watched: str, other: str
) -> None:
    kube.apply(delay_topic(other, "comes"), "people")
    kube.apply(delay_topic(watched, "comes-later"), "people")
    wait_for(lambda: f"{watched}/comes-later" in operator.passes(), operator.why)

    assert [key for key in operator.passes() if not key.startswith(f"{watched}/")] == []


def test_own_writes_cause_no_further_pass_and_changes_by_others_do(
    operator: OperatorProcess, kube: KubeApi, watched: str
) -> None:
    kube.apply(delay_topic(watched, **{"test/write": "1"}), "people")
    wait_for(lambda: written(kube, watched) == "1", operator.why)

    kube.delete(kinds.CONFIG_MAP, watched, "reminders")

    wait_for(lambda: written(kube, watched) == "1", operator.why)
    kube.apply(delay_topic(watched, "last"), "people")
    wait_for(lambda: f"{watched}/last" in operator.passes(), operator.why)
    # One because it was made, one because of the deletion, and none because of the two writes.
    assert operator.passes().count(f"{watched}/reminders") == 2


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param(["resync failed", "lease not reached"], id="list-and-lease"),
        pytest.param(["watches ended, and begin again"], id="watches", marks=pytest.mark.nightly),
    ],
)
def test_an_operator_without_rights_lives_on_and_works_once_it_has_them(
    failures: list[str], make_operator: MakeOperator, control_plane: ControlPlane, kube: KubeApi, namespace: str
) -> None:
    kube.apply(delay_topic(namespace, "before"), "people")
    user = f"operator-of-{namespace}"
    kubeconfig = control_plane.kubeconfig_for_user(user)
    operator = make_operator("one", namespace, kubeconfig, watchNamespaces=[namespace], relayNamespaces=[]).start()
    for failure in failures:
        wait_for(partial(operator.log_lines, failure), operator.why)
    assert operator.get("/readyz") == "the first look at the cluster is not done\n"

    bind_to_admin(control_plane, {"kind": "User", "name": user})

    wait_for(operator.passes, operator.why)
    kube.apply(delay_topic(namespace, "after"), "people")
    wait_for(lambda: f"{namespace}/after" in operator.passes(), operator.why)
    assert operator.terminate() == 0


@dataclass(frozen=True)
class Pair:
    """A leader, and a standby that logs in as a ServiceAccount, with all that it has asked so far."""

    namespace: str
    leader: OperatorProcess
    standby: OperatorProcess
    calls_of_standby: list[Call]


@pytest.fixture(scope="module")
def pair(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    mark = control_plane.audit.mark()
    namespace, directory = new_namespace(control_plane), tmp_path_factory.mktemp("pair")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    control_plane.client.create(accounts, {"metadata": {"name": "operator"}})
    bind_to_admin(control_plane, {"kind": "ServiceAccount", "name": "operator", "namespace": namespace})
    kubeconfigs: dict[str, Path] = {
        "leader": control_plane.kubeconfig,
        "standby": control_plane.kubeconfig_for_service_account(namespace, "operator"),
    }
    settings: dict[str, object] = {"watchNamespaces": [namespace], "relayNamespaces": []}
    leader, standby = (
        OperatorProcess(directory, name, kubeconfig, namespace, settings) for name, kubeconfig in kubeconfigs.items()
    )
    try:
        leader.start().wait_until("leader")
        standby.start().wait_until("standby")
        calls = control_plane.audit.calls(mark, user=f"system:serviceaccount:{namespace}:operator")
        yield Pair(namespace, leader, standby, calls)
    finally:
        leader.stop_whatever_happens()
        standby.stop_whatever_happens()


def test_credentials_of_a_service_account_are_enough_and_a_standby_only_reads(pair: Pair) -> None:
    assert {"get", "list"} <= by_verb(pair.calls_of_standby).keys() <= {"get", "list", "watch"}
    assert {call.agent for call in pair.calls_of_standby} == {"delaytopic-operator"}


def test_a_leader_that_is_told_to_stop_ends_its_pass_and_hands_over_at_once(
    pair: Pair, control_plane: ControlPlane, kube: KubeApi
) -> None:
    leader, standby, namespace = pair.leader, pair.standby, pair.namespace
    identity = leader.log_lines("leading")[0]["identity"]
    assert holder(control_plane, namespace) == identity
    kube.apply(delay_topic(namespace, **{"test/write": "finished", "test/seconds": "2"}), "people")
    wait_for(lambda: IN_PROGRESS in leader.get("/metrics"), leader.why)

    code = leader.terminate()
    left = holder(control_plane, namespace)

    assert (code, written(kube, namespace)) == (0, "finished")
    # A lease that is let go is taken at the next look; one that runs out keeps its holder until then.
    assert left != identity
    standby.wait_until("leader")


def test_a_leader_that_was_frozen_writes_nothing_when_it_wakes(
    make_operator: MakeOperator, kube: KubeApi, namespace: str
) -> None:
    settings = {"watchNamespaces": [namespace], "relayNamespaces": [], "leaseDuration": "3s"}
    frozen = make_operator("frozen", namespace, **settings).start().wait_until("leader")
    kube.apply(delay_topic(namespace, **{"test/write": "old", "test/seconds": "1"}), "people")
    wait_for(lambda: IN_PROGRESS in frozen.get("/metrics"), frozen.why)
    frozen.freeze()
    other = make_operator("other", namespace, **settings).start().wait_until("leader")
    wait_for(lambda: written(kube, namespace) == "old", other.why)
    kube.apply(delay_topic(namespace, **{"test/write": "new"}), "people")
    wait_for(lambda: written(kube, namespace) == "new", other.why)

    frozen.thaw()

    wait_for(lambda: frozen.log_lines("not leading any more"), frozen.why)
    wait_for(lambda: frozen.metric('delaytopic_operator_reconcile_total{result="NotLeading"}') == 1, frozen.why)
    assert written(kube, namespace) == "new"
    assert other.leads()
