"""Operators as real processes against a real API server: events come in, one leads, another takes over."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.audit import by_verb
from tests.cluster.control_plane import ControlPlane
from tests.support.operator_process import OperatorProcess
from tests.support.relay_process import wait_for

from delaytopic_operator import kinds
from delaytopic_operator.kube import KubeApi
from delaytopic_operator.kube_transport import Document

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

TAKEOVER_SECONDS = 20
IN_PROGRESS = 'in_progress_start_seconds{delaytopic_name="reminders"'

MakeOperator = Callable[..., OperatorProcess]


def delay_topic(namespace: str, name: str = "reminders", **annotations: str) -> Document:
    return {
        "apiVersion": "delaytopic.dev/v1alpha1",
        "kind": "DelayTopic",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
        "spec": {"source": {"topic": f"{name}.delayed"}, "target": {"topic": name}},
    }


def written(kube: KubeApi, namespace: str, name: str = "reminders") -> str | None:
    """What a recording reconciler wrote last."""
    found = kube.get(kinds.CONFIG_MAP, namespace, name)
    return None if found is None else found["data"]["write"]


def seconds_until(condition: Callable[[], Any], why: Callable[[], str]) -> float:
    started = time.monotonic()
    wait_for(condition, why)
    return time.monotonic() - started


def holder(control_plane: ControlPlane, namespace: str) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/delaytopic-operator"
    return str(control_plane.client.get(path)["spec"].get("holderIdentity", ""))


def test_what_is_there_and_what_comes_is_looked_at(make_operator: MakeOperator, kube: KubeApi, namespace: str) -> None:
    kube.apply(delay_topic(namespace, "there"), "people")
    operator = make_operator("one", namespace, watchNamespaces=[namespace]).start().wait_until("leader")
    wait_for(lambda: f"{namespace}/there" in operator.passes(), operator.why)

    kube.apply(delay_topic(namespace, "comes"), "people")
    wait_for(lambda: f"{namespace}/comes" in operator.passes(), operator.why)
    kube.delete(kinds.DELAY_TOPIC, namespace, "comes")

    wait_for(lambda: operator.log_lines("pass")[-1]["seen"] is False, operator.why)
    assert operator.get("/livez") == "alive\n"
    assert operator.terminate() == 0


def test_own_writes_cause_no_further_pass_and_changes_by_others_do(
    make_operator: MakeOperator, kube: KubeApi, namespace: str
) -> None:
    operator = make_operator("one", namespace, watchNamespaces=[namespace]).start().wait_until("leader")
    kube.apply(delay_topic(namespace, **{"test/write": "1"}), "people")
    wait_for(lambda: written(kube, namespace) == "1", operator.why)

    kube.delete(kinds.CONFIG_MAP, namespace, "reminders")

    wait_for(lambda: written(kube, namespace) == "1", operator.why)
    kube.apply(delay_topic(namespace, "last"), "people")
    wait_for(lambda: f"{namespace}/last" in operator.passes(), operator.why)
    # One because it was made, one because of the deletion, and none because of the two writes.
    assert operator.passes().count(f"{namespace}/reminders") == 2


def test_nothing_outside_of_the_namespaces_named_is_looked_at(
    make_operator: MakeOperator, kube: KubeApi, make_namespace: Callable[..., str]
) -> None:
    ours, theirs = make_namespace(), make_namespace()
    kube.apply(delay_topic(ours), "people")
    kube.apply(delay_topic(theirs), "people")

    operator = make_operator("one", theirs, watchNamespaces=[ours]).start().wait_until("leader")

    wait_for(operator.passes, operator.why)
    assert set(operator.passes()) == {f"{ours}/reminders"}


def test_events_arrive_again_after_a_restart_of_the_api_server(
    make_operator: MakeOperator, control_plane: ControlPlane, kube: KubeApi, namespace: str
) -> None:
    operator = make_operator("one", namespace, watchNamespaces=[namespace], resync="1h").start().wait_until("leader")
    kube.apply(delay_topic(namespace, "before"), "people")
    wait_for(lambda: f"{namespace}/before" in operator.passes(), operator.why)

    control_plane.kill_api_server()
    control_plane.start_api_server()
    kube.apply(delay_topic(namespace, "after"), "people")

    wait_for(lambda: f"{namespace}/after" in operator.passes(), operator.why)
    assert operator.child.poll() is None
    assert operator.get("/livez") == "alive\n"


def test_an_operator_without_rights_lives_on_and_works_once_it_has_them(
    make_operator: MakeOperator, control_plane: ControlPlane, kube: KubeApi, namespace: str
) -> None:
    kube.apply(delay_topic(namespace), "people")
    kubeconfig = control_plane.kubeconfig_for_user(f"operator-of-{namespace}")
    operator = make_operator("one", namespace, kubeconfig, watchNamespaces=[namespace]).start()
    wait_for(lambda: operator.log_lines("resync failed"), operator.why)
    wait_for(lambda: operator.log_lines("lease not reached"), operator.why)
    wait_for(lambda: operator.log_lines("watches ended, and begin again"), operator.why)
    assert operator.get("/readyz") == "the first look at the cluster is not done\n"

    user = f"--user=operator-of-{namespace}"
    control_plane.kubectl("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", user)

    wait_for(operator.passes, operator.why)
    assert operator.terminate() == 0


def test_a_standby_takes_over_within_twenty_seconds_of_a_leaders_sudden_death(
    make_operator: MakeOperator, kube: KubeApi, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    leader = make_operator("leader", namespace, watchNamespaces=[namespace]).start().wait_until("leader")
    standby = make_operator("standby", namespace, watchNamespaces=[namespace]).start().wait_until("standby")
    kube.apply(delay_topic(namespace), "people")
    wait_for(leader.passes, leader.why)
    assert standby.passes() == []

    leader.kill()

    seconds = seconds_until(standby.leads, standby.why)
    wait_for(standby.passes, standby.why)
    with capsys.disabled():
        print(f"\nleader killed: the standby led after {seconds:.1f} s")
    assert seconds < TAKEOVER_SECONDS


def test_a_leader_that_is_told_to_stop_hands_over_at_once(
    make_operator: MakeOperator, control_plane: ControlPlane, kube: KubeApi, namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    leader = make_operator("leader", namespace, watchNamespaces=[namespace]).start().wait_until("leader")
    standby = make_operator("standby", namespace, watchNamespaces=[namespace]).start().wait_until("standby")
    slow = delay_topic(namespace, **{"test/write": "finished", "test/seconds": "2"})
    kube.apply(slow, "people")
    wait_for(lambda: IN_PROGRESS in leader.get("/metrics"), leader.why)

    started = time.monotonic()
    code = leader.terminate()
    stopped = time.monotonic() - started
    handed_over = stopped + seconds_until(standby.leads, standby.why)

    with capsys.disabled():
        print(f"\nleader stopped after {stopped:.1f} s, the standby led after {handed_over:.1f} s")
    assert code == 0
    assert stopped < 10
    assert handed_over < stopped + 4
    assert written(kube, namespace) == "finished"
    assert holder(control_plane, namespace).startswith(leader.log_lines("leading")[0]["identity"]) is False


def test_a_leader_that_was_frozen_writes_nothing_when_it_wakes(
    make_operator: MakeOperator, control_plane: ControlPlane, kube: KubeApi, namespace: str
) -> None:
    settings = {"watchNamespaces": [namespace], "leaseDuration": "4s"}
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
    wait_for(lambda: frozen.metric('delay_operator_reconcile_total{result="NotLeading"}') == 1, frozen.why)
    assert written(kube, namespace) == "new"
    assert other.leads()


def test_credentials_of_a_service_account_are_enough_and_a_standby_asks_little(
    make_operator: MakeOperator, control_plane: ControlPlane, namespace: str
) -> None:
    control_plane.kubectl("create", "serviceaccount", "operator", "-n", namespace)
    account = f"--serviceaccount={namespace}:operator"
    control_plane.kubectl("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", account)
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "operator")
    make_operator("leader", namespace, watchNamespaces=[namespace]).start().wait_until("leader")

    standby = make_operator("standby", namespace, kubeconfig, watchNamespaces=[namespace]).start()
    standby.wait_until("standby")

    calls = control_plane.audit.calls(user=f"system:serviceaccount:{namespace}:operator")
    assert set(by_verb(calls)) <= {"get", "list", "watch"}
    assert {call.agent for call in calls} == {"delaytopic-operator"}
