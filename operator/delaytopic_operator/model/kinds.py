"""The kinds of objects that the operator reads and writes, and their addresses in the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from delaytopic_api.documents import API_VERSION, ApiVersion


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: `api_version` as in documents (`v1`, `apps/v1`), `plural` as in addresses."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The address of one object, or of all in the namespace, or of all in the cluster."""
        root = "/api/" if "/" not in self.api_version else "/apis/"
        parts = [root + self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *filter(None, (name, subresource))])


class Place(NamedTuple):
    """One watch: a resource, and the namespace that it is watched in; None: everywhere at once."""

    resource: str
    namespace: str | None

    def __str__(self) -> str:
        """`pods in shop`."""
        return self.resource if self.namespace is None else f"{self.resource} in {self.namespace}"


DELAY_TOPIC: Final = Kind(API_VERSION, "DelayTopic", "delaytopics")
DELAY_CLASS: Final = Kind(API_VERSION, "DelayClass", "delayclasses", namespaced=False)
RECURRING_RECORD: Final = Kind(API_VERSION, "RecurringRecord", "recurringrecords")
NAMESPACE: Final = Kind("v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP: Final = Kind("v1", "ConfigMap", "configmaps")
SECRET: Final = Kind("v1", "Secret", "secrets")
SERVICE_ACCOUNT: Final = Kind("v1", "ServiceAccount", "serviceaccounts")
POD: Final = Kind("v1", "Pod", "pods")
EVENT: Final = Kind("events.k8s.io/v1", "Event", "events")
DEPLOYMENT: Final = Kind("apps/v1", "Deployment", "deployments")
POD_DISRUPTION_BUDGET: Final = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY: Final = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
CRON_JOB: Final = Kind("batch/v1", "CronJob", "cronjobs")
LEASE: Final = Kind("coordination.k8s.io/v1", "Lease", "leases")
KAFKA_TOPIC: Final = Kind("kafka.strimzi.io/v1", "KafkaTopic", "kafkatopics")

DECLARED: Final = (DELAY_TOPIC, DELAY_CLASS, RECURRING_RECORD)
"""The kinds that people write; the operator writes their status, and finalizers."""
ALL: Final = (
    DELAY_TOPIC, DELAY_CLASS, RECURRING_RECORD, NAMESPACE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, POD, EVENT, DEPLOYMENT,
    POD_DISRUPTION_BUDGET, NETWORK_POLICY, CRON_JOB, LEASE, KAFKA_TOPIC,
)  # fmt: skip
_BY_DOCUMENT: Final[Mapping[tuple[str, str], Kind]] = {
    **{(kind.api_version, kind.name): kind for kind in ALL},
    **{(version.value, kind.name): kind for version in ApiVersion for kind in DECLARED},
}


def kind_of(document: dict[str, object]) -> Kind:
    """The kind of a document; raises KeyError for one that the operator has nothing to do with."""
    return _BY_DOCUMENT[str(document["apiVersion"]), str(document["kind"])]
