"""What a cluster holds that a plan is compared with. Pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from delaytopic_operator.config.operator_config import OperatorConfig

Document = dict[str, Any]


@dataclass(frozen=True)
class ClusterState:
    """As far as it may be read; without a cluster, nothing but how the operator is taken to be configured."""

    config: OperatorConfig
    is_there: bool = False
    """Whether there is a cluster."""
    topics: Sequence[Document] = ()
    classes: Sequence[Document] = ()
    namespaces: Mapping[str, Document | None] = field(default_factory=dict)
    """None for one that does not exist; one that may not be read is not among them."""
    made: Sequence[Document] = ()
    """What the operator made, records of routes among it."""
    unseen: frozenset[str] = frozenset()
    """Namespaces whose objects may not be read."""
    notes: Sequence[str] = ()
    """What could not be looked at."""
