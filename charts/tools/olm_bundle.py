"""Edge: the bundle for the Operator Lifecycle Manager: Deployment and rights of the rendered chart in one document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from charts.tools.kustomize import NAMESPACE, OLDEST_KUBERNETES, rendered
from charts.tools.places import CHART, CRDS, ROOT, text_of

BUNDLE: Final = ROOT / "deploy/olm/bundle"
DOCKERFILE: Final = BUNDLE.parent / "bundle.Dockerfile"
ACCOUNT: Final = "delaytopic"
OPTIONS: Final = (
    "crds.install=false",
    # OLM makes the account, and has not always taken NetworkPolicies.
    "networkPolicy.enabled=false",
    f"serviceAccount.create=false,serviceAccount.name={ACCOUNT}",
)
ANNOTATIONS: Final[Mapping[str, str]] = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
    "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    "operators.operatorframework.io.bundle.package.v1": "delaytopic",
    "operators.operatorframework.io.bundle.channels.v1": "alpha",
    "operators.operatorframework.io.bundle.channel.default.v1": "alpha",
}
_HEAD: Final = "# Generated from charts/delaytopic by `python -m charts.tools`.\n"
_DESCRIPTION: Final = """\
Records are produced to a source topic with a time in a header, and appear on the target topic at that time: never
early, never lost, never twice. A DelayTopic declares such a route; the operator makes topics and relays, and scales
relays from what is due next.

Install into the namespace `delaytopic-system`, for all namespaces. Then write a DelayClass with the connection to your
Kafka. Relays run in the operator's namespace; other namespaces for them, a gateway, alerts and dashboards come with the
Helm chart: https://delaytopic.dev/docs/how-to/install/
"""

_CLASS: Final[Mapping[str, Any]] = {
    "apiVersion": "delaytopic.dev/v1beta1",
    "kind": "DelayClass",
    "metadata": {"name": "standard", "annotations": {"delaytopic.dev/is-default-class": "true"}},
    "spec": {"connection": {"bootstrapServers": "kafka.kafka.svc:9092"}},
}

Document = dict[str, Any]


def olm_bundle(helm: Path) -> dict[Path, str]:
    """Path and text of each file; `helm` is the command."""
    text = rendered(helm, "--set", ",".join(OPTIONS)).replace("managed-by: kustomize", "managed-by: olm")
    documents = [document for document in yaml.safe_load_all(text) if document]
    chart = yaml.safe_load(text_of(CHART / "Chart.yaml"))
    definitions = {path.name: text_of(path) for path in sorted(CRDS.glob("delaytopic.dev_*.yaml"))}
    labels = "".join(f"LABEL {name}={value}\n" for name, value in ANNOTATIONS.items())
    files = {
        "metadata/annotations.yaml": _HEAD + _yaml({"annotations": dict(ANNOTATIONS)}),
        "manifests/delaytopic.clusterserviceversion.yaml": _HEAD + _yaml(_service_version(chart, documents)),
        **{f"manifests/{name}": definition for name, definition in definitions.items()},
        **{f"manifests/{_file_name(each)}": _HEAD + _yaml(each) for each in _others(documents)},
    }
    dockerfile = f"{_HEAD}FROM scratch\n{labels}COPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n"
    return {DOCKERFILE: dockerfile, **{BUNDLE / name: text for name, text in files.items()}}


def _service_version(chart: Document, documents: list[Document]) -> Document:
    (deployment,) = (each for each in documents if each["kind"] == "Deployment")
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    kinds = yaml.safe_load(chart["annotations"]["artifacthub.io/crds"])
    links = yaml.safe_load(chart["annotations"]["artifacthub.io/links"])
    examples = [_CLASS, yaml.safe_load(text_of(ROOT / "examples/reminders.yaml"))]
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"delaytopic.v{chart['version']}",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(examples, indent=2),
                "capabilities": chart["annotations"]["artifacthub.io/operatorCapabilities"],
                "categories": "Streaming & Messaging",
                "containerImage": images[0]["image"],
                "description": chart["description"],
                "operatorframework.io/suggested-namespace": NAMESPACE,
                "support": "delaytopic",
            },
        },
        "spec": {
            "displayName": "delaytopic",
            "description": _DESCRIPTION,
            "version": chart["version"],
            "maturity": "alpha",
            "minKubeVersion": OLDEST_KUBERNETES,
            "keywords": chart["keywords"],
            "provider": {"name": "delaytopic", "url": chart["home"]},
            "links": links,
            "installModes": [
                {"type": mode, "supported": mode == "AllNamespaces"}
                for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": kinds},
            "relatedImages": images,
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": _cluster_rules(documents)}],
                    "deployments": [
                        {
                            "name": deployment["metadata"]["name"],
                            "label": deployment["metadata"]["labels"],
                            "spec": deployment["spec"],
                        }
                    ],
                },
            },
        },
    }


def _cluster_rules(documents: list[Document]) -> list[Document]:
    """Return what the operator may do in all namespaces."""
    bound = {each["roleRef"]["name"] for each in documents if each["kind"] == "ClusterRoleBinding"}
    roles = (each for each in documents if each["kind"] == "ClusterRole" and each["metadata"]["name"] in bound)
    return [rule for role in roles for rule in role["rules"]]


def _others(documents: list[Document]) -> Iterator[Document]:
    """Yield what is beside: OLM puts it into the namespace where it installs.

    Rights that hold in that namespace alone are bound by the chart's RoleBindings: OLM would let `permissions` of an
    operator for all namespaces hold in all of them.
    """
    bound = {each["roleRef"]["name"] for each in documents if each["kind"] == "ClusterRoleBinding"}
    for each in documents:
        metadata = {name: value for name, value in each["metadata"].items() if name != "namespace"}
        if each["kind"] not in ("Deployment", "ClusterRoleBinding") and metadata["name"] not in bound:
            yield {**each, "metadata": metadata}


def _file_name(document: Document) -> str:
    return f"{document['metadata']['name'].replace(':', '.')}.{document['kind'].lower()}.yaml"


def _yaml(document: Document) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=120)
