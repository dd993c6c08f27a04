"""Tools of tests on the control plane: waiting by watching, rights as data, and helm."""

from __future__ import annotations

from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from tests.cluster.access import Access, allowed, done, may
from tests.cluster.awaiting import NotInTime, await_condition, await_gone, await_object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.helm import Helm, HelmError

from delaytopic_process.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.kubernetes]

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: greeting\nversion: 1.0.0\nicon: https://example.org/icon.svg\n",
    "values.yaml": "text: hello\n",
    "templates/greeting.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {text: {{ required "say something" .Values.text }}, server: {{ .Capabilities.KubeVersion.Minor | quote }}}
""",
}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    for name, content in CHART.items():
        path = tmp_path / "greeting" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path / "greeting"


def test_an_object_is_awaited_until_it_is_as_wanted(control_plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    created = Timer(0.2, control_plane.client.create, [path, {"metadata": {"name": "late"}, "data": {"a": "b"}}])
    created.start()

    found = await_object(control_plane.client, f"{path}/late", lambda found: found is not None)

    created.join()
    assert found is not None
    assert found["data"] == {"a": "b"}


def test_what_does_not_come_is_shown_as_it_is(control_plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
    await_object(control_plane.client, path, lambda found: found is not None)

    with pytest.raises(NotInTime, match=r"(?s)not as wanted within 0.2 s; it is:.*kube-root-ca"):
        await_gone(control_plane.client, path, seconds=0.2)


def test_a_condition_is_awaited(control_plane: ControlPlane) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/delaytopics.delaytopic.dev"

    assert await_condition(control_plane.client, path, "Established")["kind"] == "CustomResourceDefinition"


def test_rights_are_compared_with_what_was_done(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "role", "r", "--verb=get,list", "--resource=configmaps", "-n", namespace)
    control_plane.kubectl(
        "create", "rolebinding", "r", "--role=r", f"--serviceaccount={namespace}:default", "-n", namespace
    )
    agent = f"program-of-{namespace}"
    client = control_plane.client_for_service_account(namespace, "default", agent=agent)
    # The server's authorizer learns of a role a moment after everybody else.
    wait_until(lambda: may(client, Access("list", "", "configmaps"), namespace), timeout_seconds=30)
    mark = control_plane.audit.mark()
    client.get(f"/api/v1/namespaces/{namespace}/configmaps")

    wanted = {Access("get", "", "configmaps"), Access("list", "", "configmaps")}
    assert allowed(client, namespace) == wanted
    assert done(control_plane.audit.calls(mark, agent=agent)) == {Access("list", "", "configmaps")}
    assert may(client, Access("list", "", "configmaps"), namespace)
    assert not may(client, Access("list", "", "configmaps"))
    assert not may(client, Access("update", "apps", "deployments/scale"), namespace)


def test_a_chart_is_rendered_for_the_servers_version(helm: Helm, chart: Path) -> None:
    rendered: Any = helm.template(chart, {"text": "good morning"}, release="morning")

    metadata = {"name": "morning"}
    data = {"text": "good morning", "server": "34"}
    assert rendered == [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}]


def test_a_chart_with_a_mistake_says_what_it_misses(helm: Helm, chart: Path) -> None:
    with pytest.raises(HelmError, match="say something"):
        helm.template(chart, {"text": ""})


def test_a_chart_is_linted(helm: Helm, chart: Path) -> None:
    assert "0 chart(s) failed" in helm.lint(chart)


def test_a_chart_is_installed_and_taken_away(
    helm: Helm, chart: Path, control_plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/greeting"

    helm.install("greeting", chart, namespace)
    installed = control_plane.client.find(path)
    helm.uninstall("greeting", namespace)

    assert installed is not None
    assert installed["data"]["text"] == "hello"
    assert control_plane.client.find(path) is None
