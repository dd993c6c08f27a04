"""The relays of a DelayTopic: how many, who decides, and what they run on."""

from __future__ import annotations

import re
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.model import Model, require
from delaytopic_api.documents.pods import PodTemplate, Resources
from delaytopic_api.errors import InvalidText
from delaytopic_api.values.choices import AutoscalingMode, ScaleToZero
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.names import ReplicaCount
from delaytopic_api.values.percent import Percent


def _sensible(utilization: Percent) -> Percent:
    if not 10 <= utilization.ratio * 100 <= 95:
        raise InvalidText(f'"{utilization}" is out of range; it must be between 10% and 95%')
    return utilization


_NUMBER = "double(self.replace('%', ''))"
Utilization = Annotated[
    Percent, Checked(_sensible, Rule(f"{_NUMBER} >= 10.0 && {_NUMBER} <= 95.0", "must be between 10% and 95%"))
]


def _names_of_spark(conf: dict[str, str]) -> dict[str, str]:
    for name in conf:
        if re.fullmatch(r"spark\.[A-Za-z0-9_.-]{1,247}", name) is None:
            raise InvalidText(
                f'"{name}" is no setting of Spark; use a name that begins with spark., for Hadoop with spark.hadoop.'
            )
    return conf


SparkConf = Annotated[
    dict[str, Annotated[str, Field(max_length=4_096)]],
    Field(max_length=100),
    Checked(
        _names_of_spark,
        Rule(
            r"self.all(name, name.matches('^spark[.][A-Za-z0-9_.-]{1,247}$'))",
            "must be settings of Spark, whose names begin with spark., for Hadoop with spark.hadoop.",
        ),
    ),
]
"""Settings of Spark by their names."""
KubernetesObject = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


class AutoscalingSpec(Model):
    """Bounds and pace at which the number of relays follows the schedule: relays know their future load."""

    mode: AutoscalingMode = AutoscalingMode.OPERATOR
    """Operator: from the due times ahead. External: an HPA or KEDA, through the scale subresource. Fixed: as
    relay.replicas says."""
    min_replicas: ReplicaCount = 1
    """The fewest relays. Take two or more for a precision under 5s: the loss of a single relay costs its restart."""
    max_replicas: Annotated[ReplicaCount, Field(ge=1)] | None = None
    """The most relays. Absent: the number of source partitions, or the class's limit."""
    scale_to_zero: ScaleToZero = ScaleToZero.NEVER
    """WhenNothingPending: no relay runs while nothing is pending and nothing arrives."""
    look_ahead: Annotated[Duration, between("10s", "24h")] = Duration("10m")
    """The span ahead in which due times are counted."""
    scale_down_stabilization: Annotated[Duration, between("0s", "24h")] = Duration("5m")
    """The time that fewer relays must have sufficed before some are removed."""
    target_utilization: Utilization | None = None
    """The load to plan a relay for, such as 60%. Absent: the class's default, else 60%."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        by_operator = self.mode is AutoscalingMode.OPERATOR
        require(
            (
                self.max_replicas is None or self.min_replicas <= self.max_replicas,
                "minReplicas",
                f"is {self.min_replicas}, more than maxReplicas ({self.max_replicas})",
            ),
            (
                not by_operator or self.min_replicas > 0 or self.scale_to_zero is ScaleToZero.WHEN_NOTHING_PENDING,
                "minReplicas",
                f"0 needs scaleToZero: {ScaleToZero.WHEN_NOTHING_PENDING}",
            ),
        )
        return self


class RelaySpec(Model):
    """The relay processes."""

    replicas: ReplicaCount = 1
    """The number of relays with mode Fixed or External, the first one with Operator. The scale subresource sets it."""
    image: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    """The container image, such as `registry.example/delaytopic/relay:0.1.0`. Absent: the one that this release of the
    operator was tested with."""
    resources: Resources = Resources()
    """The requests and limits of a relay's container. Absent: the class's, else the operator's."""
    pod_template: PodTemplate = PodTemplate()
    """The labels and annotations of the pods, and the places that they run in, in the shape of a PodTemplateSpec."""
