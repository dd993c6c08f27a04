"""The chart, rendered with several values by both Helms."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from charts.tools.kustomize import NAMESPACE
from charts.tools.places import CHART, ROOT
from mkdocs.config import load_config
from mkdocs.structure.files import get_files
from mkdocs.structure.nav import get_navigation
from playground.kube.helm import HelmError
from tests.support.chart.helm import BARE, EVERYTHING, TRY, VALUES, ChartHelm, named, of_kind, settings
from tests.support.chart.pod_rules import broken_rules

from delaytopic_api import DelayClass, load_document
from delaytopic_local.servers.redis_server import RedisServer
from delaytopic_operator.config import OperatorConfig
from delaytopic_relay.backlog.redis.preflight import check_facts, read_facts

pytestmark = pytest.mark.integration

OPERATOR_LABELS = {
    "app.kubernetes.io/name": "delaytopic",
    "app.kubernetes.io/instance": "delaytopic",
    "app.kubernetes.io/component": "operator",
}


def _options(path: Path | None) -> list[str]:
    return ["--values", str(path)] if path else []


def _config(documents: list[dict[str, Any]]) -> dict[str, Any]:
    return _config_of(documents, "delaytopic")


def _config_of(documents: list[dict[str, Any]], release: str) -> dict[str, Any]:
    text = named(documents, "ConfigMap", release)["data"]["operator.yaml"]
    config: dict[str, Any] = yaml.safe_load(text)
    return config


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "own")
def test_lint_finds_nothing_to_object_to(any_helm: ChartHelm, values: Path | None) -> None:
    report = any_helm.lint(*_options(values))

    assert "0 chart(s) failed" in report


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "own")
def test_every_object_keeps_the_rules_of_the_house(any_helm: ChartHelm, values: Path | None) -> None:
    documents = any_helm.template(*_options(values))

    broken = {
        f"{document['kind']} {document['metadata']['name']}": problems
        for document in documents
        if not document["metadata"]["name"].endswith("-extra") and (problems := broken_rules(document))
    }
    assert broken == {}


@pytest.mark.parametrize("values", [None, *VALUES], ids=lambda path: path.stem if path else "own")
def test_the_operators_configuration_is_one_that_it_takes(helm: ChartHelm, values: Path | None) -> None:
    documents = helm.template(*_options(values))

    config = OperatorConfig.model_validate(_config(documents))

    assert config.namespace == NAMESPACE


def test_by_default_the_configuration_says_only_what_follows_from_the_release(helm: ChartHelm) -> None:
    config = _config(helm.template())

    assert config == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "OperatorConfig",
        "namespace": NAMESPACE,
        "operatorLabels": OPERATOR_LABELS,
        "images": {"relay": "delaytopic/relay:0.1.0", "audit": "delaytopic/audit:0.1.0"},
        "relayNamespaces": [],
    }


def test_the_images_of_the_chart_are_those_that_the_operator_takes_by_itself(helm: ChartHelm) -> None:
    config = OperatorConfig.model_validate(_config(helm.template()))

    assert config.images == OperatorConfig().images


def test_settings_of_the_operator_reach_its_configuration_and_cannot_contradict_the_release(helm: ChartHelm) -> None:
    config = _config(helm.template(*_options(EVERYTHING)))

    assert config == {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "OperatorConfig",
        "namespace": NAMESPACE,
        "operatorLabels": OPERATOR_LABELS,
        "gateway": {
            "tokenSha256": "0a" * 32,
            "labels": {**OPERATOR_LABELS, "app.kubernetes.io/component": "gateway"},
        },
        "images": {
            "relay": "registry.example/mirror/delaytopic/relay:0.1.0",
            "audit": "registry.example/mirror/delaytopic/audit:0.1.0",
            "pullPolicy": "Always",
            "pullSecrets": ["registry"],
        },
        "watchNamespaces": ["shop", "billing"],
        "relayNamespaces": ["delay-relays", "delaytopic-system"],
        "workers": 4,
        "inheritedLabels": ["team"],
        "relayResources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "audit": {
            "schedule": "H * * * *",
            "ledger": "s3a://audit/ledger",
            "mode": "Kubernetes",
            "driverAccount": "audit-driver",
            "executors": {"min": 2, "max": 8},
        },
    }


def test_an_operator_whose_relays_run_everywhere_is_told_no_namespaces_of_relays(helm: ChartHelm) -> None:
    config = OperatorConfig.model_validate(
        _config(helm.template("--set", "relaysEverywhere=true,relayNamespaces={shop}"))
    )

    assert config.relay_namespaces is None


def test_relays_are_told_the_labels_that_the_operators_pods_have(helm: ChartHelm) -> None:
    documents = helm.template("--set", "nameOverride=delays", release="late")

    config = OperatorConfig.model_validate(_config_of(documents, "late-delays"))

    pod = named(documents, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert config.operator_labels.items() <= pod.items()
    assert OperatorConfig().operator_labels.items() <= OPERATOR_LABELS.items()


def test_changed_settings_roll_the_operator_and_the_same_ones_do_not(helm: ChartHelm) -> None:
    def stamp(*options: str) -> str:
        template = named(helm.template(*options), "Deployment")["spec"]["template"]
        return str(template["metadata"]["annotations"]["delaytopic.dev/config-hash"])

    before, again, changed = stamp(), stamp("--set", "replicaCount=3"), stamp("--set", "operator.workers=3")

    assert before == again
    assert before != changed


def test_the_operator_answers_its_probes_on_the_port_that_it_serves(helm: ChartHelm) -> None:
    container = named(helm.template(), "Deployment")["spec"]["template"]["spec"]["containers"][0]

    assert container["ports"] == [{"name": "http", "containerPort": OperatorConfig().http_port, "protocol": "TCP"}]
    assert [container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")] == [
        {"path": "/livez", "port": "http"},
        {"path": "/livez", "port": "http"},
        {"path": "/readyz", "port": "http"},
    ]
    assert (container["command"], container["args"]) == (
        ["delaytopic-operator"],
        ["--config=/etc/delaytopic/operator.yaml", "--log-level=info"],
    )


def test_a_budget_of_disruptions_is_made_only_where_it_would_not_block_every_drain(helm: ChartHelm) -> None:
    of_two, of_one = helm.template(), helm.template("--set", "replicaCount=1")

    assert named(of_two, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    assert of_kind(of_one, "PodDisruptionBudget") == []


def test_definitions_are_the_generated_ones_and_stay_unless_told_otherwise(any_helm: ChartHelm) -> None:
    kept = of_kind(any_helm.template(), "CustomResourceDefinition")
    gone = of_kind(any_helm.template("--set", "crds.keep=false"), "CustomResourceDefinition")
    generated = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((CHART / "files/crds").iterdir())]

    assert [each["spec"] for each in kept] == [each["spec"] for each in generated]
    assert [each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in kept] == ["keep"] * len(generated)
    assert [each["metadata"].get("annotations") for each in gone] == [None] * len(generated)
    assert of_kind(any_helm.template("--set", "crds.install=false"), "CustomResourceDefinition") == []


def test_the_default_class_is_one_that_the_operator_takes_and_waits_in_the_redis_of_the_chart(helm: ChartHelm) -> None:
    document = named(helm.template(*_options(TRY)), "DelayClass")

    loaded = load_document(document)

    assert isinstance(loaded, DelayClass)
    assert loaded.is_default
    assert document["spec"]["backend"] == {
        "type": "RedisZset",
        "redis": {"url": f"redis://delaytopic-redis.{NAMESPACE}.svc:6379/0"},
    }


def test_a_class_with_a_backend_of_its_own_keeps_it(helm: ChartHelm) -> None:
    spec = '{"connection": {"bootstrapServers": "k:9092"}, "backend": {"type": "KafkaBuckets"}}'

    document = named(helm.template(*_options(TRY), *settings(defaultClass__spec=spec)), "DelayClass")

    assert document["spec"]["backend"] == {"type": "KafkaBuckets"}


def test_the_class_is_a_hook_where_its_kind_is_not_known_yet_and_an_ordinary_object_elsewhere(
    any_helm: ChartHelm,
) -> None:
    known = ("--api-versions", "delaytopic.dev/v1beta1/DelayClass")

    first = named(any_helm.template(*_options(TRY)), "DelayClass")["metadata"]["annotations"]
    later = named(any_helm.template(*_options(TRY), *known), "DelayClass")["metadata"]["annotations"]

    assert first == {
        "delaytopic.dev/is-default-class": "true",
        "helm.sh/resource-policy": "keep",
        "helm.sh/hook": "post-install,post-upgrade",
        "helm.sh/hook-delete-policy": "hook-failed",
        "meta.helm.sh/release-name": "delaytopic",
        "meta.helm.sh/release-namespace": NAMESPACE,
    }
    assert later == {"delaytopic.dev/is-default-class": "true", "helm.sh/resource-policy": "keep"}


def test_the_redis_for_trying_loses_nothing_by_itself(helm: ChartHelm) -> None:
    container = named(helm.template(*_options(TRY)), "StatefulSet")["spec"]["template"]["spec"]["containers"][0]

    arguments = container["args"]

    assert dict(zip(arguments[::2], arguments[1::2], strict=True)) == {
        "--dir": "/data",
        "--maxmemory-policy": "noeviction",
        "--maxmemory": "384mb",
        "--appendonly": "yes",
        "--save": "",
        "--auto-aof-rewrite-min-size": "1gb",
        "--protected-mode": "no",
    }


def _let_into_redis(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    (rule,) = named(documents, "NetworkPolicy", "delaytopic-redis")["spec"]["ingress"]
    return list(rule["from"])


@pytest.mark.parametrize(
    ("options", "namespaces"),
    [
        (["--values", str(TRY)], [NAMESPACE]),
        (["--values", str(EVERYTHING)], [NAMESPACE, "delay-relays"]),
        (["--set", "redis.enabled=true,relayNamespaces={shop},redis.relayNamespaces={relays}"], [NAMESPACE, "relays"]),
    ],
    ids=["relays everywhere", "namespace of the default class", "named"],
)
def test_the_redis_for_trying_lets_in_the_operator_and_relays_of_the_platform_and_none_of_tenants(
    helm: ChartHelm, options: list[str], namespaces: list[str]
) -> None:
    operator, relays = _let_into_redis(helm.template(*options))

    by_name = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces}
    assert operator == {"podSelector": {"matchLabels": OPERATOR_LABELS}}
    assert relays == {
        "namespaceSelector": {"matchExpressions": [by_name]},
        "podSelector": {"matchLabels": {"app.kubernetes.io/name": "delaytopic-relay"}},
    }


def test_no_user_is_set_where_openshift_assigns_one(helm: ChartHelm) -> None:
    documents = helm.template("--set", "redis.enabled=true,redis.user=0")

    contexts = [
        named(documents, kind)["spec"]["template"]["spec"]["securityContext"] for kind in ("Deployment", "StatefulSet")
    ]

    assert contexts == [{"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}] * 2


def test_a_security_context_is_that_of_operator_and_gateway_and_what_it_says_not_stays_restricted(
    helm: ChartHelm,
) -> None:
    documents = helm.template(*_options(EVERYTHING))

    contexts = [each["spec"]["template"]["spec"]["securityContext"] for each in of_kind(documents, "Deployment")]

    restricted = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert contexts == [{**restricted, "runAsUser": 1000, "fsGroup": 1000}] * 2


def test_a_real_redis_with_the_settings_of_the_chart_is_one_that_relays_have_nothing_to_say_against(
    helm: ChartHelm, tmp_path: Path
) -> None:
    container = named(helm.template(*_options(TRY)), "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
    arguments = dict(zip(container["args"][::2], container["args"][1::2], strict=True))
    settings = {name.removeprefix("--"): value for name, value in arguments.items() if name != "--dir"}

    with RedisServer(tmp_path, settings=settings) as server, redis.Redis.from_url(server.url) as client:
        warnings = check_facts(read_facts(client, "redis of the chart"))
        limit = client.info("memory")["maxmemory"]

    assert (warnings, limit) == ([], 384 * 1024 * 1024)


def test_relays_serve_their_metrics_where_the_pod_monitor_looks(helm: ChartHelm) -> None:
    monitor = named(helm.template(*_options(EVERYTHING)), "PodMonitor", "delaytopic-relays")["spec"]
    made = yaml.safe_load_all((ROOT / "tests/data/operator/class.objects.yaml").read_text(encoding="utf-8"))
    pod = named([each for each in made if each], "Deployment")["spec"]["template"]

    ports = [port["name"] for port in pod["spec"]["containers"][0]["ports"]]

    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [each["port"] for each in monitor["podMetricsEndpoints"]] == ports


def test_service_monitors_find_services_that_select_the_pods_of_operator_and_relays(helm: ChartHelm) -> None:
    documents = helm.template(*_options(BARE), "--set", "relayNamespaces={shop}")

    monitors = {each["metadata"]["name"]: each["spec"] for each in of_kind(documents, "ServiceMonitor")}
    found = {
        name: {
            each["metadata"]["namespace"]: each["spec"]["selector"]
            for each in of_kind(documents, "Service")
            if spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items()
            and [port["name"] for port in each["spec"]["ports"]] == [port["port"] for port in spec["endpoints"]]
        }
        for name, spec in monitors.items()
    }
    relays = {"app.kubernetes.io/name": "delaytopic-relay"}
    assert found == {
        "delaytopic-operator": {NAMESPACE: OPERATOR_LABELS},
        "delaytopic-relays": {NAMESPACE: relays, "shop": relays},
    }
    assert [spec["namespaceSelector"]["matchNames"] for spec in monitors.values()] == [[NAMESPACE], [NAMESPACE, "shop"]]


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert (chart["version"], chart["appVersion"]) == (version("delaytopic"), version("delaytopic"))


def test_relay_namespaces_enforce_pod_security_and_outlive_the_release(helm: ChartHelm) -> None:
    documents = helm.template(*_options(EVERYTHING))

    made = of_kind(documents, "Namespace")

    assert [each["metadata"]["name"] for each in made] == ["delay-relays"]
    assert made[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert made[0]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_what_watches_it_is_made_only_on_request(helm: ChartHelm) -> None:
    kinds = {"PodMonitor": 2, "ServiceMonitor": 0, "PrometheusRule": 1}

    without, with_all = helm.template(), helm.template(*_options(EVERYTHING))

    assert {kind: len(of_kind(without, kind)) for kind in kinds} == dict.fromkeys(kinds, 0)
    assert {kind: len(of_kind(with_all, kind)) for kind in kinds} == kinds
    dashboards = [each for each in of_kind(with_all, "ConfigMap") if "-dashboard-" in each["metadata"]["name"]]
    assert [each["metadata"]["labels"]["grafana_dashboard"] for each in dashboards] == ["1"] * 3
    assert of_kind(without, "ConfigMap") == [named(without, "ConfigMap", "delaytopic")]


def test_alerts_name_the_published_pages(helm: ChartHelm) -> None:
    rule = named(helm.template(*_options(EVERYTHING)), "PrometheusRule")

    urls = {
        each["alert"]: each["annotations"]["runbook_url"]
        for group in rule["spec"]["groups"]
        for each in group["rules"]
        if "alert" in each
    }

    assert urls["DelayTopicNotReady"] == "https://wiki.example/delays#DelayTopicNotReady"
    assert urls["DelaySLOFastBurn"] == "https://wiki.example/delays#DelaySLOBurn"
    assert all(url.startswith("https://wiki.example/delays#") for url in urls.values())


def test_alerts_lead_to_pages_that_the_site_has_in_its_navigation(helm: ChartHelm) -> None:
    config = load_config(str(ROOT / "mkdocs.yml"))
    config = config.plugins.on_config(config)
    pages = {f"{config.site_url}{page.file.url}" for page in get_navigation(get_files(config), config).pages}

    rule = named(helm.template("--set", "monitoring.prometheusRule.enabled=true"), "PrometheusRule")
    urls = {
        each["annotations"]["runbook_url"]
        for group in rule["spec"]["groups"]
        for each in group["rules"]
        if "alert" in each
    }

    assert len(urls) > 10
    assert urls - pages == set()


def test_labels_of_prometheus_expressions_reach_the_cluster_as_they_are(helm: ChartHelm) -> None:
    rule = named(helm.template(*_options(EVERYTHING)), "PrometheusRule")
    source = yaml.safe_load((CHART / "rules/delaytopic.rules.yaml").read_text(encoding="utf-8"))

    expressions = [each["expr"] for group in rule["spec"]["groups"] for each in group["rules"]]

    assert expressions == [each["expr"] for group in source["groups"] for each in group["rules"]]


def test_extra_objects_are_rendered_as_templates(helm: ChartHelm) -> None:
    documents = helm.template(*_options(EVERYTHING), release="mine")

    assert named(documents, "ConfigMap", "mine-extra")["metadata"]["namespace"] == NAMESPACE


def test_two_releases_in_one_cluster_share_no_role(helm: ChartHelm) -> None:
    def roles(namespace: str) -> set[str]:
        documents = helm.template(namespace=namespace)
        bound = ("ClusterRoleBinding", "RoleBinding")
        return {document["roleRef"]["name"] for document in documents if document["kind"] in bound}

    assert roles("one") & roles("other") == set()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["replica=3"], "additional properties 'replica' not allowed"),
        (["replicaCount=two"], "at '/replicaCount': got string, want integer"),
        (["replicaCount=0"], "at '/replicaCount': minimum: got 0, want 1"),
        (
            ["image.pullPolicy=Sometimes"],
            "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
        ),
        (["image.tag=latest"], "the tag of image delaytopic/operator is latest: name a version, or a digest"),
        (["relay.image.digest=sha256:12"], "at '/relay/image/digest': 'sha256:12' does not match pattern"),
        (["imagePullSecrets={registry}"], "at '/imagePullSecrets/0': got string, want object"),
        (["logLevel=loud"], "at '/logLevel': value must be one of 'debug', 'info', 'warning', 'error'"),
        (["podSecurityContext.runAsNonRoot=false"], "at '/podSecurityContext/runAsNonRoot': value must be true"),
        (["podSecurityContext.runAsNonRoot=null"], "at '/podSecurityContext': missing property 'runAsNonRoot'"),
        (["securityContext.runAsUser=0"], "at '/securityContext/runAsUser': minimum: got 0, want 1"),
        (["operator.resync=7days"], "at '/operator/resync': '7days' does not match pattern"),
        (["operator.namespace=other"], "at '/operator': additional properties 'namespace' not allowed"),
        (["operator.audit.when=noon"], "at '/operator/audit': additional properties 'when' not allowed"),
        (["operator.audit.schedule=@daily"], "at '/operator/audit': missing property 'ledger'"),
        (
            ["operator.audit.schedule=@daily", "operator.audit.ledger=here"],
            "at '/operator/audit/ledger': 'here' does not",
        ),
        (["watchNamespaces={Shop}"], "at '/watchNamespaces/0': 'Shop' does not match pattern"),
        (["watchNamespaces=shop"], "at '/watchNamespaces': got string, want array"),
        (["relayNamespaces={a,a}"], "at '/relayNamespaces': items at 0 and 1 are equal"),
        (["defaultClass.create=true"], "at '/defaultClass/spec': missing property 'connection'"),
        (
            ["defaultClass.create=true", "defaultClass.spec.connection.bootstrapServer=k:9092"],
            "at '/defaultClass/spec/connection': additional properties 'bootstrapServer' not allowed",
        ),
        (
            [
                "defaultClass.create=true",
                "defaultClass.spec.connection.bootstrapServers=k:9092",
                "defaultClass.spec.backend.type=Redis",
            ],
            "at '/defaultClass/spec/backend/type': value must be one of",
        ),
        (["redis.maxmemory=lots"], "at '/redis/maxmemory': 'lots' does not match pattern"),
        (
            ["monitoring.prometheusRule.runbookUrl=https://wiki/"],
            "at '/monitoring/prometheusRule/runbookUrl': 'https://wiki/' does not match pattern",
        ),
        (
            ["monitoring.podMonitor.enabled=true", "monitoring.serviceMonitor.enabled=true"],
            "would both scrape the same pods: enable one of them",
        ),
        (
            ["monitoring.serviceMonitor.enabled=true", "relaysEverywhere=true"],
            "relays everywhere would need a Service in every namespace: use monitoring.podMonitor",
        ),
        (["resources.request.cpu=1"], "at '/resources': additional properties 'request' not allowed"),
        (["secretsEverywhere=maybe"], "at '/secretsEverywhere': got string, want boolean"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_values_are_refused_with_the_place_and_what_is_allowed(
    any_helm: ChartHelm, given: list[str], message: str
) -> None:
    with pytest.raises(HelmError) as refusal:
        any_helm.template(*(part for each in given for part in ("--set", each)))

    assert message in str(refusal.value)


def test_an_older_kubernetes_is_refused(any_helm: ChartHelm) -> None:
    with pytest.raises(HelmError, match=r"requires kubeVersion: >=1\.31"):
        any_helm.template("--kube-version", "1.30.0")
