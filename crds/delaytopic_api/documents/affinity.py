"""Affinity and selectors of Kubernetes' pods, as far as relays take them: the shape is that of core/v1."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from delaytopic_api.documents.model import Model
from delaytopic_api.values.lists import ATOMIC

Weight = Annotated[int, Field(strict=True, ge=1, le=100)]
TopologyKey = Annotated[str, Field(min_length=1, max_length=317)]
Texts = Annotated[list[str], ATOMIC]
Labels = dict[str, str]


class LabelOperator(StrEnum):
    """The relation of a label to the values of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class NodeOperator(StrEnum):
    """The relation of a node's label or field to the values of a requirement."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


class LabelRequirement(Model):
    """A requirement of a label."""

    key: str
    """The label's name, such as `app.kubernetes.io/name`."""
    operator: LabelOperator
    """The relation of the label to the values."""
    values: Texts | None = None
    """The values for In and NotIn, such as `[relay]`. Absent: for Exists and DoesNotExist."""


class LabelSelector(Model):
    """A selection of objects by their labels; all of its requirements have to be met."""

    match_labels: Labels | None = None
    """The labels that an object must have, such as `team: shop`."""
    match_expressions: Annotated[list[LabelRequirement], ATOMIC] | None = None
    """The requirements that an object's labels must meet."""


class NodeRequirement(Model):
    """A requirement of a node's label or field."""

    key: str
    """The name of the label or field, such as `topology.kubernetes.io/zone`."""
    operator: NodeOperator
    """The relation of the label or field to the values."""
    values: Texts | None = None
    """The values for In, NotIn, Gt and Lt, such as `[eu-1a]`. Absent: for Exists and DoesNotExist."""


class NodeSelectorTerm(Model):
    """A selection of nodes; all of its requirements have to be met."""

    match_expressions: Annotated[list[NodeRequirement], ATOMIC] | None = None
    """The requirements that a node's labels must meet."""
    match_fields: Annotated[list[NodeRequirement], ATOMIC] | None = None
    """The requirements that a node's fields must meet, such as metadata.name."""


class NodeSelector(Model):
    """A selection of nodes by one of several terms."""

    node_selector_terms: Annotated[list[NodeSelectorTerm], ATOMIC]
    """The terms, of which one has to be met."""


class PreferredNodes(Model):
    """Nodes that are preferred."""

    weight: Weight
    """The weight of the preference among others, from 1 to 100."""
    preference: NodeSelectorTerm
    """The nodes that are preferred."""


class NodeAffinity(Model):
    """The nodes that pods run on."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """The nodes that pods are placed on, and no others."""
    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredNodes], ATOMIC] | None = None
    """The nodes that pods are placed on rather than on others."""


class PodAffinityTerm(Model):
    """Pods to be near to, or far from."""

    label_selector: LabelSelector | None = None
    """The labels of the pods that are meant."""
    topology_key: TopologyKey
    """The node label by which places are told apart, such as `kubernetes.io/hostname`."""
    namespaces: Texts | None = None
    """The namespaces of the pods that are meant, such as `[shop]`. Absent: the relays' own, and those that
    namespaceSelector selects."""
    namespace_selector: LabelSelector | None = None
    """The labels of the namespaces of the pods that are meant."""
    match_label_keys: Texts | None = None
    """The labels, such as `[pod-template-hash]`, whose values have to be those of the relay's pod."""
    mismatch_label_keys: Texts | None = None
    """The labels, such as `[team]`, whose values must not be those of the relay's pod."""


class PreferredPods(Model):
    """Pods to be rather near to, or far from."""

    weight: Weight
    """The weight of the preference among others, from 1 to 100."""
    pod_affinity_term: PodAffinityTerm
    """The pods that are meant."""


class PodAffinity(Model):
    """Other pods that pods run beside, or that they keep away from."""

    required_during_scheduling_ignored_during_execution: Annotated[list[PodAffinityTerm], ATOMIC] | None = None
    """The pods that have to be near, or far."""
    preferred_during_scheduling_ignored_during_execution: Annotated[list[PreferredPods], ATOMIC] | None = None
    """The pods that are rather to be near, or far."""


class Affinity(Model):
    """The nodes and other pods that pods run on and beside."""

    node_affinity: NodeAffinity | None = None
    """The nodes that pods run on."""
    pod_affinity: PodAffinity | None = None
    """The pods that pods run beside."""
    pod_anti_affinity: PodAffinity | None = None
    """The pods that pods keep away from."""
