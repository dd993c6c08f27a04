"""The part of Kubernetes' pods that classes and DelayTopics set: resources, and a template in the shape of core/v1."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from delaytopic_api.documents.affinity import Affinity, Labels, LabelSelector, Texts, TopologyKey
from delaytopic_api.documents.model import Model
from delaytopic_api.values.lists import ATOMIC, as_map
from delaytopic_api.values.quantity import Quantity

Quantities = Annotated[dict[str, Quantity], Field(max_length=20)]


class Resources(Model):
    """Requests and limits of a container, as Kubernetes has them; claims are not for relays and audits."""

    requests: Quantities | None = None
    """The amounts that a node must have left for the container, such as `{cpu: 250m, memory: 384Mi}`."""
    limits: Quantities | None = None
    """The most that the container may use, such as `{memory: 512Mi}`."""

    def as_container(self) -> dict[str, dict[str, str]]:
        """Return them as a container has them, quantities as text; empty where nothing is set."""
        parts = {"requests": self.requests, "limits": self.limits}
        return {field: {name: str(size) for name, size in sizes.items()} for field, sizes in parts.items() if sizes}


class TolerationOperator(StrEnum):
    """The relation of a toleration's value to that of a taint."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """The effect of a taint on pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Model):
    """A taint of nodes that pods tolerate."""

    key: str | None = None
    """The taint's key, such as `spot`. Absent: all keys, with operator Exists."""
    operator: TolerationOperator | None = None
    """Exists: any value of the taint is tolerated. Equal: value alone. Absent: Equal."""
    value: str | None = None
    """The taint's value, such as `relays`; only with operator Equal."""
    effect: TaintEffect | None = None
    """The taint's effect. Absent: all effects."""
    toleration_seconds: Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)] | None = None
    """The time in seconds for which a taint of effect NoExecute is tolerated, such as 300. Absent: for ever."""


class WhenUnsatisfiable(StrEnum):
    """The fate of a pod that would be placed too unevenly."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class NodeInclusion(StrEnum):
    """The use of a property of nodes when pods are counted."""

    HONOR = "Honor"
    IGNORE = "Ignore"


Positive = Annotated[int, Field(strict=True, ge=1, lt=2**31)]


class TopologySpreadConstraint(Model):
    """A rule for the spread of pods over places."""

    max_skew: Positive
    """The largest difference in numbers of pods between two places, such as 1."""
    topology_key: TopologyKey
    """The node label by which places are told apart, such as `topology.kubernetes.io/zone`."""
    when_unsatisfiable: WhenUnsatisfiable
    """DoNotSchedule: a pod waits rather than be placed too unevenly. ScheduleAnyway: it is placed where it is best."""
    label_selector: LabelSelector | None = None
    """The labels of the pods that are counted. Absent: those of the DelayTopic's relays."""
    match_label_keys: Texts | None = None
    """The labels, such as `[pod-template-hash]`, whose values have to be those of the relay's pod."""
    min_domains: Positive | None = None
    """The least number of places, such as 3, with DoNotSchedule. Absent: 1."""
    node_affinity_policy: NodeInclusion | None = None
    """The use of nodeAffinity and nodeSelector when places are counted. Absent: Honor."""
    node_taints_policy: NodeInclusion | None = None
    """The use of taints when places are counted. Absent: Ignore."""


class PodMetadata(Model):
    """Labels and annotations of pods."""

    labels: Labels | None = None
    """The labels of the pods, such as `team: shop`."""
    annotations: Labels | None = None
    """The annotations of the pods, such as `example.com/owner: shop`."""


class PodSpec(Model):
    """The places that pods run in, and their priority."""

    node_selector: Labels | None = None
    """The labels that a node must have, such as `pool: relays`."""
    tolerations: Annotated[list[Toleration], ATOMIC] | None = None
    """The taints of nodes that the pods tolerate."""
    affinity: Affinity | None = None
    """The nodes and other pods that the pods run on and beside."""
    topology_spread_constraints: (
        Annotated[list[TopologySpreadConstraint], as_map("topologyKey", "whenUnsatisfiable")] | None
    ) = None
    """The spread of the pods over places. Absent: over zones and hosts, as far as there are several."""
    priority_class_name: Annotated[str, Field(max_length=253)] | None = None
    """The PriorityClass of the pods, such as `business-critical`. Absent: the cluster's default."""


class PodTemplate(Model):
    """A template of pods in the shape of Kubernetes' PodTemplateSpec, with the fields that relays take."""

    metadata: PodMetadata | None = None
    """The labels and annotations of the pods."""
    spec: PodSpec | None = None
    """The places that the pods run in, and their priority."""

    def metadata_fields(self) -> dict[str, Any]:
        """Return labels and annotations, as far as they are set, as documents hold them."""
        return self.metadata.to_document() if self.metadata is not None else {}

    def spec_fields(self) -> dict[str, Any]:
        """Return the fields of the pods' spec that are set, as documents hold them."""
        return self.spec.to_document() if self.spec is not None else {}
