"""The CronJob that audits DelayTopics together: its command line, its documents, its places, its limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operator.routes import Route, route
from tests.unit.operator.resources.golden import example
from tests.unit.operator.resources.pod_security import violations

from delaytopic_api.errors import InvalidDocument
from delaytopic_cli.audit.commands import run
from delaytopic_cli.audit.documents import audited_topics, kafka_of
from delaytopic_operator.model.reconciliation import Key, class_key
from delaytopic_operator.resources.audits import audit_objects, cron_job_of, schedule_of
from delaytopic_operator.resources.identity import Document

URL = {"schedule": "0 * * * *", "ledger": "s3a://audits/ledger"}
ELSEWHERE = {"bootstrapServers": "elsewhere:9092"}
STANDARD = class_key("standard")
VOLUME = {"schedule": "0 * * * *", "volume": {"persistentVolumeClaim": {"claimName": "audits"}}}


def audited(audit: dict[str, Any], **spec: Any) -> Route:
    return route(config={"audit": audit}, **spec)


def of_kind(documents: list[Document], kind: str) -> list[Document]:
    return [each for each in documents if each["kind"] == kind]


def job(given_route: Route) -> dict[str, Any]:
    return dict(given_route.audit_object("CronJob")["spec"]["jobTemplate"]["spec"])


def container(given_route: Route) -> dict[str, Any]:
    (only,) = job(given_route)["template"]["spec"]["containers"]
    return dict(only)


def options(documents: list[Document], files: Path) -> dict[str, Any]:
    """Return what the real command makes of the arguments; `files` is where what is mounted really is."""
    places = {"/etc/delaytopic/config": files / "config", "/etc/delaytopic/audit": files / "audit"}
    for place in places.values():
        place.mkdir()
    (cron_job,) = of_kind(documents, "CronJob")
    pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    of_documents = {source["configMap"]["name"] for source in pod["volumes"][1]["projected"]["sources"]}
    for config_map in of_kind(documents, "ConfigMap"):
        of = "audit" if config_map["metadata"]["name"] in of_documents else "config"
        for name, text in config_map["data"].items():
            (files / of / name).write_text(text, encoding="utf-8")
    words = pod["containers"][0]["args"]
    for inside, outside in places.items():
        words = [word.replace(inside, str(outside)) for word in words]
    assert words[:2] == ["audit", "run"]
    with click.Context(run) as parent:
        return run.make_context("run", words[2:], parent=parent).params


@pytest.mark.parametrize(
    ("of_class", "ledger"), [({}, "classes/standard"), (None, "namespaces/shop")], ids=["class", "namespace"]
)
def test_the_command_is_one_that_delaytopic_has(tmp_path: Path, of_class: dict[str, Any] | None, ledger: str) -> None:
    params = options(audited(VOLUME, of_class=of_class).audit(), tmp_path)

    told = {"file", "name", "relay_config", "ledger", "output", "master", "memory", "every", "serve", "exit_zero"}
    assert {name: value for name, value in params.items() if name in told} == {
        "file": str(tmp_path / "audit"),
        "name": None,
        "relay_config": tmp_path / "config" / "relay.yaml",
        "ledger": f"/var/lib/delaytopic/ledger/{ledger}",
        "output": "/var/lib/delaytopic/reports",
        "master": "local[*]",
        "memory": "1024m",
        "every": None,
        "serve": "0.0.0.0:8080",
        "exit_zero": True,
    }


@pytest.mark.parametrize("of_class", [{}, None], ids=["class", "namespace"])
def test_the_documents_are_those_of_all_delay_topics(tmp_path: Path, of_class: dict[str, Any] | None) -> None:
    of = audited(URL, of_class=of_class)

    params = options(of.audit_of("b", "a"), tmp_path)

    assert sorted(each.name for each in audited_topics(params["file"], None)) == ["a", "b"]
    assert kafka_of(params["relay_config"]).bootstrap_servers == of.settings.connection.bootstrap_servers  # type: ignore[union-attr]


def test_many_delay_topics_are_in_several_config_maps_that_the_operator_keeps_in_memory(tmp_path: Path) -> None:
    documents = audited(URL, of_class={}).audit_of(*(f"reminders-{number}" for number in range(400)))

    sizes = [sum(map(len, each["data"].values())) for each in of_kind(documents, "ConfigMap")]
    assert len(sizes) > 2
    assert max(sizes) < 64 << 10
    assert len(audited_topics(options(documents, tmp_path)["file"], None)) == 400


def test_a_delay_topic_that_the_class_refuses_by_now_is_left_out(tmp_path: Path) -> None:
    of = audited(URL, of_class={})
    (good, bad) = of.named("good", "bad")
    source = bad.spec.source.model_copy(update={"topic": "others.a"})
    bad = bad.model_copy(update={"spec": bad.spec.model_copy(update={"source": source})})

    documents = audit_objects(of.audit_key, of.delay_class, [bad, good], of.config)

    assert [each.name for each in audited_topics(options(documents, tmp_path)["file"], None)] == ["good"]


def test_delay_topics_of_a_namespace_that_reach_kafka_in_two_ways_have_a_cron_job_for_each_and_one_ledger() -> None:
    one = audited(URL)
    other = audited(URL, connection=ELSEWHERE).named("other")

    documents = audit_objects(one.audit_key, None, [*one.named("a", "b"), *other], one.config)

    cron_jobs = of_kind(documents, "CronJob")
    assert len({each["metadata"]["name"] for each in cron_jobs}) == 2
    args = [each["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"] for each in cron_jobs]
    assert {words[words.index("--ledger") + 1] for words in args} == {"s3a://audits/ledger/namespaces/shop"}
    named = {cron_job_of(each.settings, one.config) for each in (one, audited(URL, connection=ELSEWHERE))}
    assert named == {each["metadata"]["name"] for each in cron_jobs}


def test_a_delay_topic_whose_connection_cannot_be_used_keeps_no_other_from_its_audit() -> None:
    bad = audited(URL, backend={"type": "RedisZset"})

    assert audit_objects(bad.audit_key, None, bad.named("bad"), bad.config) == []


def test_another_delay_topic_changes_nothing_but_the_documents() -> None:
    one, two = (audited(URL, of_class={}).audit_of(*names) for names in (("a",), ("a", "b")))

    changed = [before["kind"] for before, after in zip(one, two, strict=True) if before != after]
    assert changed == ["ConfigMap"]


def test_its_pod_is_as_restricted_as_any() -> None:
    spec = job(audited(VOLUME))["template"]["spec"]

    assert violations(spec) == []
    assert spec["automountServiceAccountToken"] is False


def test_only_the_operator_reaches_it() -> None:
    of = audited(URL, of_class={})
    policy = of.audit_object("NetworkPolicy")

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
    labels = job(of)["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_kubernetes_removes_it_with_the_class() -> None:
    owners = [each["metadata"]["ownerReferences"] for each in audited(URL, of_class={}).audit()]

    assert all(owner["kind"] == "DelayClass" and owner["controller"] for (owner,) in owners)


def test_an_account_of_the_operators_choice_is_not_made() -> None:
    of = audited(URL | {"serviceAccount": "audits"}, of_class={})

    assert of_kind(of.audit(), "ServiceAccount") == []
    assert job(of)["template"]["spec"]["serviceAccountName"] == "audits"


@pytest.mark.parametrize("name", ["class", "everything"])
def test_an_audit_holds_delivery_to_what_is_in_force(tmp_path: Path, name: str) -> None:
    given_route = example(name)
    params = options(given_route.audit(), tmp_path)

    (settings,) = audited_topics(params["file"], None)

    assert replace(settings, autoscaling=given_route.settings.autoscaling) == given_route.settings
    assert kafka_of(params["relay_config"]).bootstrap_servers == given_route.settings.connection.bootstrap_servers  # type: ignore[union-attr]


def test_the_documents_do_not_change_with_the_number_of_relays() -> None:
    few, many = (audited(URL, relay={"replicas": replicas}) for replicas in (1, 9))

    assert few.audit() == many.audit()


def test_the_documents_hold_what_was_written_and_no_defaults() -> None:
    *_, documents = of_kind(audited(URL, suspend="Ingest").audit(), "ConfigMap")
    (topic,) = (yaml.safe_load(text) for text in documents["data"].values())

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
        assert words[words.index("--ledger") + 1] == f"{place}/namespaces/shop"


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


@pytest.mark.parametrize(
    ("audit", "of_class", "place"),
    [
        (URL, {"tables": "Delta"}, "s3a://audits/ledger/tables/classes/standard"),
        (URL | {"tables": "Delta"}, None, "s3a://audits/ledger/tables/namespaces/shop"),
        (URL | {"tables": "Delta"}, {"tables": "None"}, None),
        (VOLUME | {"tables": "Delta"}, {}, "/var/lib/delaytopic/tables/classes/standard"),
        (URL, {}, None),
    ],
)
def test_tables_are_published_beside_reports_where_the_class_or_else_the_operator_says_so(
    tmp_path: Path, audit: dict[str, Any], of_class: dict[str, Any] | None, place: str | None
) -> None:
    of = {"audit": of_class} if of_class is not None else None

    assert options(audited(audit, of_class=of).audit(), tmp_path)["tables"] == place


@pytest.mark.parametrize("ledger", ["hdfs://name/ledger", "gs://audits/ledger"])
def test_tables_in_a_store_that_does_not_keep_them_safe_are_refused_at_the_operators_start(ledger: str) -> None:
    with pytest.raises(InvalidDocument, match=r"audit\.tables: needs a volume, or a ledger in s3a:// or file://"):
        audited(URL | {"ledger": ledger, "tables": "Delta"})


def test_settings_of_spark_are_handed_on(tmp_path: Path) -> None:
    conf = {"spark.hadoop.fs.s3a.endpoint": "https://s3.example?a=b", "spark.sql.shuffle.partitions": "8"}

    assert options(audited(URL | {"sparkConf": conf}).audit(), tmp_path)["conf"] == conf


def test_what_a_class_says_of_its_audits_comes_before_the_operators_own(tmp_path: Path) -> None:
    operators = {
        "sparkConf": {"spark.a": "operator", "spark.b": "operator"},
        "resources": {"limits": {"memory": "2Gi"}},
    }
    of_class = {"sparkConf": {"spark.b": "class"}, "resources": {"limits": {"memory": "8Gi"}}}

    found = route(config={"audit": URL | operators}, of_class={"audit": of_class})

    params = options(found.audit(), tmp_path)
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
    ("of_class", "audit", "folders"),
    [
        (None, VOLUME, ["reports/shop", "ledger/namespaces/shop"]),
        (None, VOLUME | {"ledger": "prod/ledger"}, ["reports/shop", "prod/ledger/namespaces/shop"]),
        (None, VOLUME | URL, ["reports/shop"]),
        ({}, VOLUME, ["reports", "ledger/classes/standard"]),
        (None, URL, []),
        (None, VOLUME | {"tables": "Delta"}, ["reports/shop", "tables/namespaces/shop", "ledger/namespaces/shop"]),
    ],
)
def test_an_audit_sees_of_the_volume_nothing_but_its_own_folders(
    of_class: dict[str, Any] | None, audit: dict[str, Any], folders: list[str]
) -> None:
    found = audited(audit, of_class=of_class)

    mounts = [mount for mount in container(found)["volumeMounts"] if mount["name"] == "ledger"]

    assert mounts == [
        {"name": "ledger", "mountPath": f"/var/lib/delaytopic/{folder}", "subPath": folder} for folder in folders
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


def test_without_a_schedule_there_is_no_audit_nor_without_delay_topics() -> None:
    of_class = audited({}, of_class={"audit": {"schedule": "5 * * * *"}})

    assert (of_class.audit(), audited(URL).audit_of()) == ([], [])


def test_a_class_may_have_a_schedule_of_its_own() -> None:
    found = audited(URL, of_class={"audit": {"schedule": "*/10 * * * *"}})

    assert found.audit_object("CronJob")["spec"]["schedule"] == "*/10 * * * *"


def scheduled(schedule: str, key: Key = STANDARD) -> str | None:
    return schedule_of(key, None, audited(URL | {"schedule": schedule}).config)


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=40))
def test_an_h_is_a_minute_and_an_hour_of_each_audits_own(name: str) -> None:
    minute, hour, *rest = (scheduled("H H * * 1-5", Key("", name)) or "").split()

    assert int(minute) in range(60)
    assert int(hour) in range(24)
    assert rest == ["*", "*", "1-5"]


def test_audits_with_an_h_do_not_all_begin_at_once() -> None:
    schedules = {scheduled("H * * * *", Key(f"team-{number}", "")) for number in range(1_000)}

    assert len(schedules) == 60


def test_other_schedules_are_taken_as_they_are() -> None:
    for schedule in ("5 * * * *", "@hourly", "*/10 2,4 * * THU"):
        assert scheduled(schedule) == schedule
