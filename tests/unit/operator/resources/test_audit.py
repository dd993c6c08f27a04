"""The CronJob that audits a DelayTopic: its command line, its documents, its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.routes import Route, route
from tests.unit.operator.resources.golden import example

from delaytopic_api.errors import InvalidDocument, Refused
from delaytopic_cli.audit.commands import run
from delaytopic_cli.audit.documents import audited_topics, kafka_of
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.resources.audits.cron_job import spread_schedule

URL = {"schedule": "0 * * * *", "ledger": "s3a://audits/ledger"}
VOLUME = {"schedule": "0 * * * *", "volume": {"persistentVolumeClaim": {"claimName": "audits"}}}


def audited(audit: dict[str, Any], **spec: Any) -> Route:
    return route(config={"audit": audit}, **spec)


def job(given_route: Route) -> dict[str, Any]:
    return dict(given_route.audit_object("CronJob")["spec"]["jobTemplate"]["spec"])


def container(given_route: Route) -> dict[str, Any]:
    (only,) = job(given_route)["template"]["spec"]["containers"]
    return dict(only)


def options(given_route: Route, files: Any) -> dict[str, Any]:
    """Return what the real command makes of the arguments; `files` is where what is mounted really is."""
    for config_map in (given_route.relay_object("ConfigMap"), given_route.audit_object("ConfigMap")):
        for name, text in config_map["data"].items():
            (files / name).write_text(text, encoding="utf-8")
    mounted = {"/etc/delaytopic/config": str(files), "/etc/delaytopic/audit": str(files)}
    words = container(given_route)["args"]
    for inside, outside in mounted.items():
        words = [word.replace(inside, outside) for word in words]
    assert words[:2] == ["audit", "run"]
    with click.Context(run) as parent:
        return run.make_context("run", words[2:], parent=parent).params


def test_the_command_is_one_that_delaytopic_has(tmp_path: Any) -> None:
    params = options(audited(VOLUME), tmp_path)

    given_options = {"file", "name", "relay_config", "ledger", "output", "master", "memory", "status_file", "exit_zero"}
    assert {name: value for name, value in params.items() if name in given_options} == {
        "file": str(tmp_path / "documents.yaml"),
        "name": "shop/order-reminders",
        "relay_config": tmp_path / "relay.yaml",
        "ledger": "/var/lib/delaytopic/ledger/shop.order-reminders",
        "output": "/var/lib/delaytopic/reports",
        "master": "local[*]",
        "memory": "1024m",
        "status_file": "/dev/termination-log",
        "exit_zero": True,
    }


@pytest.mark.parametrize("name", ["class", "everything"])
def test_an_audit_holds_delivery_to_what_is_in_force(tmp_path: Any, name: str) -> None:
    given_route = example(name)
    params = options(given_route, tmp_path)

    (settings,) = audited_topics(params["file"], params["name"])

    assert replace(settings, autoscaling=given_route.settings.autoscaling) == given_route.settings
    assert kafka_of(params["relay_config"]).bootstrap_servers == given_route.settings.connection.bootstrap_servers  # type: ignore[union-attr]


def test_the_documents_do_not_change_with_the_number_of_relays() -> None:
    few, many = (audited(URL, relay={"replicas": replicas}) for replicas in (1, 9))

    assert few.audit_object("ConfigMap") == many.audit_object("ConfigMap")
    assert few.audit() == many.audit()


def test_the_documents_hold_what_was_written_and_no_defaults() -> None:
    (topic,) = yaml.safe_load_all(audited(URL, suspend="Ingest").audit_object("ConfigMap")["data"]["documents.yaml"])

    assert topic["metadata"] == {"name": "order-reminders", "namespace": "shop"}
    assert topic["spec"].keys() == {"connection", "backend", "source", "target", "suspend"}


def test_a_ledger_is_a_url_or_in_the_volume() -> None:
    ledgers: dict[str, dict[str, Any]] = {
        "s3a://audits/ledger": URL,
        "/var/lib/delaytopic/ledger": VOLUME,
        "/var/lib/delaytopic/prod/ledger": VOLUME | {"ledger": "prod/ledger"},
    }

    for place, audit in ledgers.items():
        words = container(audited(audit))["args"]
        assert words[words.index("--ledger") + 1] == f"{place}/shop.order-reminders"


def test_a_ledger_that_would_not_last_is_refused_at_the_operators_start() -> None:
    with pytest.raises(InvalidDocument, match=r"audit\.ledger: must be a URL, or in a volume"):
        audited({"schedule": "0 * * * *", "ledger": "ledger"})


def test_reports_go_to_the_volume_or_beside_a_ledger_that_is_a_url() -> None:
    outputs: dict[str, dict[str, Any]] = {
        "/var/lib/delaytopic/reports": VOLUME | URL,
        "s3a://audits/ledger/reports": URL,
    }

    for place, audit in outputs.items():
        words = container(audited(audit))["args"]
        assert words[words.index("--output") + 1] == place


def test_settings_of_spark_are_handed_on(tmp_path: Any) -> None:
    conf = {"spark.hadoop.fs.s3a.endpoint": "https://s3.example?a=b", "spark.sql.shuffle.partitions": "8"}

    assert options(audited(URL | {"sparkConf": conf}), tmp_path)["conf"] == conf


def test_what_a_class_says_of_its_audits_comes_before_the_operators_own(tmp_path: Any) -> None:
    operators = {
        "sparkConf": {"spark.a": "operator", "spark.b": "operator"},
        "resources": {"limits": {"memory": "2Gi"}},
    }
    of_class = {"sparkConf": {"spark.b": "class"}, "resources": {"limits": {"memory": "8Gi"}}}

    found = route(config={"audit": URL | operators}, of_class={"audit": of_class})

    params = options(found, tmp_path)
    assert (params["conf"], params["memory"]) == ({"spark.a": "operator", "spark.b": "class"}, "4096m")
    assert container(found)["resources"] == {"limits": {"memory": "8Gi"}}


@pytest.mark.parametrize("name", ["fs.s3a.endpoint", "spark.a b", "spark."])
def test_a_setting_that_is_none_of_sparks_is_refused_at_the_operators_start(name: str) -> None:
    with pytest.raises(InvalidDocument, match=r"audit\.sparkConf"):
        audited(URL | {"sparkConf": {name: "1"}})


def test_credentials_and_an_account_are_those_of_audits_alone() -> None:
    found = audited(URL | {"credentialsSecret": "audit-s3", "serviceAccount": "audits"})

    pod = job(found)["template"]["spec"]
    assert pod["serviceAccountName"] == "audits"
    assert container(found)["envFrom"] == [{"secretRef": {"name": "audit-s3"}}]
    relay = found.relay_object("Deployment")["spec"]["template"]["spec"]
    assert relay["serviceAccountName"] != "audits"
    assert "envFrom" not in relay["containers"][0]


def test_a_volume_can_be_written_to_by_a_process_that_is_not_root() -> None:
    pod = job(audited(VOLUME))["template"]["spec"]

    assert {"name": "ledger", **VOLUME["volume"]} in pod["volumes"]  # type: ignore[dict-item]
    assert pod["securityContext"]["fsGroup"] == 65532


@pytest.mark.parametrize(
    ("audit", "folders"),
    [
        (VOLUME, ["reports", "ledger"]),
        (VOLUME | {"ledger": "prod/ledger"}, ["reports", "prod/ledger"]),
        (VOLUME | URL, ["reports"]),
        (URL, []),
    ],
)
def test_an_audit_sees_of_the_volume_nothing_but_the_folders_of_its_delay_topic(
    audit: dict[str, Any], folders: list[str]
) -> None:
    found = audited(audit)
    own = f"{found.topic.metadata.namespace}.{found.topic.metadata.name}"

    mounts = [mount for mount in container(found)["volumeMounts"] if mount["name"] == "ledger"]

    assert mounts == [
        {"name": "ledger", "mountPath": f"/var/lib/delaytopic/{folder}/{own}", "subPath": f"{folder}/{own}"}
        for folder in folders
    ]


def test_runs_never_overlap_never_pile_up_and_always_end() -> None:
    spec = audited(URL).audit_object("CronJob")["spec"]

    assert spec | {"jobTemplate": None} == {
        "schedule": "0 * * * *",
        "timeZone": "Etc/UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 600,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": None,
    }
    limits = {field: value for field, value in job(audited(URL)).items() if field != "template"}
    assert limits == {"activeDeadlineSeconds": 3600, "backoffLimit": 2, "podReplacementPolicy": "Failed"}


@pytest.mark.parametrize(
    ("resources", "heap"),
    [({"limits": {"memory": "8Gi"}}, "4096m"), ({"limits": {"memory": "512Mi"}}, "512m"), ({}, "1024m")],
)
def test_java_gets_half_of_the_containers_memory(resources: dict[str, Any], heap: str) -> None:
    words = container(audited(URL | {"resources": resources}))["args"]

    assert words[words.index("--memory") + 1] == heap


def test_without_a_schedule_there_is_no_audit() -> None:
    assert route().audit() == []


def test_an_audit_is_refused_where_relays_are() -> None:
    with pytest.raises(Refused):
        audited(URL, backend={"type": "RedisZset"}).audit()


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_an_h_is_a_minute_and_an_hour_of_each_delay_topics_own(name: str) -> None:
    minute, hour, *rest = spread_schedule("H H * * 1-5", Key("shop", name)).split()

    assert int(minute) in range(60)
    assert int(hour) in range(24)
    assert rest == ["*", "*", "1-5"]


def test_audits_with_an_h_do_not_all_begin_at_once() -> None:
    schedules = {spread_schedule("H * * * *", Key("shop", f"topic-{number}")) for number in range(1_000)}

    assert len(schedules) == 60


def test_other_schedules_are_taken_as_they_are() -> None:
    for schedule in ("5 * * * *", "@hourly", "*/10 2,4 * * THU"):
        assert spread_schedule(schedule, Key("shop", "orders")) == schedule
