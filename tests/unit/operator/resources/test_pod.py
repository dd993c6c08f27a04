"""The pods of relays: what they may, what they get, and how they are replaced."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import Any

import pytest
from click import Option
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.routes import Route, route
from tests.unit.operator.resources.golden import EXAMPLES, example
from tests.unit.operator.resources.pod_security import violations

from delaytopic_api import Quantity, RelayConfig, load_relay_config
from delaytopic_api.errors import Refused
from delaytopic_operator.resources import kube_cluster_of
from delaytopic_operator.resources.container_resources import relay_limits
from delaytopic_relay.__main__ import main
from delaytopic_relay.telemetry.server import Health, PageServer

MIB = 1 << 20


def told(given_route: Route) -> RelayConfig:
    """Return what the relays are started with."""
    return load_relay_config(given_route.relay_object("ConfigMap")["data"]["relay.yaml"])


def audit_pod(given_route: Route) -> dict[str, Any]:
    job = given_route.audit_object("CronJob")["spec"]["jobTemplate"]["spec"]
    return dict(job["template"]["spec"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pod_may_do_more_than_the_restricted_standard_allows(name: str) -> None:
    given_route = example(name)
    pods = [given_route.pod()["spec"]] + ([audit_pod(given_route)] if given_route.audit() else [])

    assert [violations(pod) for pod in pods] == [[] for _ in pods]


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pod_has_a_token_or_can_write_but_to_its_temporary_folder(name: str) -> None:
    pod = example(name).pod()["spec"]

    (container,) = pod["containers"]
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert writable == ["/tmp"]


def test_every_mount_has_its_volume_and_every_volume_is_mounted() -> None:
    for name in EXAMPLES:
        pod = example(name).pod()["spec"]
        mounts = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
        assert {volume["name"] for volume in pod["volumes"]} == mounts


def test_probes_ask_for_pages_that_relays_have() -> None:
    container = route().container()
    fine = Health(True, "running")
    server = PageServer(
        "",
        0,
        health=lambda: fine,
        readiness=lambda: fine,
        metrics=bytes,
        status=lambda: pytest.fail("not asked for"),
        pending=lambda _: pytest.fail("not asked for"),
    )

    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] == container["ports"][0]["name"]
        assert server.answer(container[probe]["httpGet"]["path"], client="10.0.0.1").status is HTTPStatus.OK
    assert container["ports"][0]["containerPort"] == told(route()).http.port


def test_the_command_is_one_that_relays_have(tmp_path: Any) -> None:
    container = route().container()
    file = tmp_path / "relay.yaml"
    file.write_text("kind: Other", encoding="utf-8")
    mounted = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "config"]

    arguments = [argument.replace(f"{mounted[0]}/", f"{tmp_path}/") for argument in container["args"]]
    answer = CliRunner().invoke(main, arguments)

    assert container["command"] == ["delaytopic-relay"]
    assert arguments == ["--config", str(file)]
    assert answer.exit_code == 2
    assert "must be RelayConfig" in answer.output


def test_a_relay_is_known_in_its_group_by_the_name_of_its_pod() -> None:
    options = {option.envvar: option for option in main.params if isinstance(option, Option)}
    (variable,) = route().container()["env"]

    assert options[variable["name"]].name == "name"
    assert variable["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}


def test_a_relay_has_time_to_hand_over_before_it_is_killed() -> None:
    seconds = route().pod()["spec"]["terminationGracePeriodSeconds"]

    assert seconds * 1000 > told(route()).limits.shutdown_grace.ms


def test_the_class_says_how_long_a_relay_may_be_silent_and_take_to_hand_over() -> None:
    given_route = route(of_class={"relay": {"sessionTimeout": "45s", "shutdownGrace": "90s"}})

    limits = told(given_route).limits

    assert (limits.session_timeout, limits.shutdown_grace) == ("45s", "90s")
    assert given_route.pod()["spec"]["terminationGracePeriodSeconds"] > 90


def test_new_relays_come_before_old_ones_go() -> None:
    assert route().relay_object("Deployment")["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0},
    }


@pytest.mark.parametrize(
    ("relay", "of_class", "memory"),
    [
        ({"limits": {"memory": "2Gi"}}, {"limits": {"memory": "1Gi"}}, "2Gi"),
        ({}, {"limits": {"memory": "1Gi"}}, "1Gi"),
        ({}, {}, "512Mi"),
    ],
)
def test_resources_are_the_delay_topics_else_the_classs_else_the_operators(
    relay: dict[str, Any], of_class: dict[str, Any], memory: str
) -> None:
    given_route = route(
        of_class={"relay": {"resources": of_class}}, backend={"type": "KafkaBuckets"}, relay={"resources": relay}
    )

    assert given_route.container()["resources"]["limits"]["memory"] == memory


def test_resources_are_taken_whole_and_never_mixed() -> None:
    of_class = {"requests": {"cpu": "4"}, "limits": {"memory": "4Gi"}}
    given_route = route(
        of_class={"relay": {"resources": of_class}},
        backend={"type": "KafkaBuckets"},
        relay={"resources": {"limits": {"memory": "256Mi"}}},
    )

    assert given_route.container()["resources"] == {"limits": {"memory": "256Mi"}}


@pytest.mark.parametrize(
    ("resources", "schedules"),
    [
        ({"limits": {"memory": "512Mi"}}, "256Mi"),
        ({"limits": {"memory": "1.5Gi"}}, "768Mi"),
        ({"limits": {"memory": "128Mi"}}, "64Mi"),
        ({"limits": {"memory": "130Mi"}}, "65Mi"),
        ({"requests": {"memory": "300M"}}, "143Mi"),
        ({"requests": {"memory": "64Mi"}}, "64Mi"),
        ({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}, "1024Mi"),
        ({"requests": {"cpu": "1"}}, "256Mi"),
    ],
)
def test_schedules_get_half_of_the_containers_memory(resources: dict[str, Any], schedules: str) -> None:
    assert told(route(relay={"resources": resources})).limits.memory == schedules


@given(st.integers(min_value=128 * MIB, max_value=1 << 45))
def test_schedules_never_get_more_than_half_nor_less_than_a_relay_needs(limit: int) -> None:
    memory = relay_limits(route().settings, None, {"limits": {"memory": str(limit)}}).memory

    assert 64 * MIB <= memory.value <= limit / 2
    assert Quantity(memory) == memory


@pytest.mark.parametrize(
    ("resources", "line"),
    [
        ({"limits": {"memory": "100Mi"}}, 'limits.memory: "100Mi" is too little; a relay needs at least 128Mi'),
    ],
)
def test_resources_that_make_no_sense_are_refused(resources: dict[str, Any], line: str) -> None:
    with pytest.raises(Refused) as refused:
        route(relay={"resources": resources}).relay_objects()

    assert str(refused.value) == f"DelayTopic shop/order-reminders: spec.relay.resources.{line}"


def test_an_image_of_a_tenants_choice_never_gets_the_classs_credentials() -> None:
    relay = {"image": "mine:1"}

    assert route(relay=relay).container()["image"] == "mine:1"
    with pytest.raises(Refused, match=r"spec\.relay\.image: is only allowed with an inline spec\.connection: it would"):
        route(of_class={}, relay=relay).relay_objects()


def test_all_that_is_wrong_is_said_at_once() -> None:
    relay = {
        "resources": {"limits": {"memory": "1Mi"}},
        "podTemplate": {"metadata": {"labels": {"delaytopic.dev/name": "x"}}},
    }

    with pytest.raises(Refused) as refused:
        route(backend={"type": "RedisZset"}, relay=relay).relay_objects()

    assert [problem.path for problem in refused.value.problems] == [
        "spec.backend.redis",
        "spec.relay.resources.limits.memory",
        'spec.relay.podTemplate.metadata.labels["delaytopic.dev/name"]',
    ]


def test_a_relay_is_named_by_its_pod_and_by_the_cluster_that_it_runs_in(monkeypatch: pytest.MonkeyPatch) -> None:
    given = route()
    monkeypatch.setattr(Route, "identity", replace(given.identity, kube_cluster="0a1b2c3d"))

    names = given.container()["env"]

    pod_name = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    assert names == [
        {"name": "POD_NAME", "valueFrom": pod_name},
        {"name": "DELAYTOPIC_RELAY_NAME", "value": "$(POD_NAME).k-0a1b2c3d"},
    ]
    assert kube_cluster_of(given.relay_object("Deployment")) == "0a1b2c3d"
