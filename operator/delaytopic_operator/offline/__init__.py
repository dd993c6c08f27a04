"""The plan of the operator, by its own rules and without a cluster: for `delaytopic plan` and `delaytopic local`."""

from __future__ import annotations

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.observe.route_index import conflicts_among
from delaytopic_operator.offline.cluster_view import ClusterState
from delaytopic_operator.offline.documents import Document, Documents, sorted_out
from delaytopic_operator.offline.outcome import (
    EXIT_CODES,
    Change,
    Judgement,
    Outcome,
    RecurringOutcome,
    Step,
    TopicOutcome,
)
from delaytopic_operator.offline.planner import make_plan

__all__ = [
    "EXIT_CODES",
    "Change",
    "ClusterState",
    "Document",
    "Documents",
    "Judgement",
    "OperatorConfig",
    "Outcome",
    "RecurringOutcome",
    "Step",
    "TopicOutcome",
    "conflicts_among",
    "make_plan",
    "sorted_out",
]
