"""The face of the operator to `delaytopic plan` and `local`: its rules, and the facts that they are asked with."""

from __future__ import annotations

from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.decide.children import desired_children, replicas
from delaytopic_operator.decide.plan import (
    FINALIZER,
    Action,
    AddFinalizer,
    Apply,
    Delete,
    DoTopic,
    Plan,
    RemoveFinalizer,
    WriteRecord,
)
from delaytopic_operator.decide.planner import decide_scaling, plan
from delaytopic_operator.decide.rules_in_force import edit_sentence
from delaytopic_operator.errors import RecordUnreadable
from delaytopic_operator.kube.indexers import owner_of
from delaytopic_operator.kube.object_cache import ObjectCache
from delaytopic_operator.model.conditions import FALSE, instant
from delaytopic_operator.model.declared_rules import DeclaredRules, declared, fields_of, taken_over
from delaytopic_operator.model.kafka_view import KafkaView, TopicFacts
from delaytopic_operator.model.kinds import KAFKA_TOPIC
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.model.record import (
    COMPONENT,
    Role,
    RouteRecord,
    TopicRecord,
    begin_record,
    find_record,
    record_document,
    record_name,
    record_of,
)
from delaytopic_operator.observe.fleet import Fleet
from delaytopic_operator.observe.observation import (
    PAUSE,
    NamespaceFacts,
    Observation,
    Problem,
    Topics,
    identity_of,
    is_paused,
)
from delaytopic_operator.observe.route_index import RouteIndex, conflicts_among
from delaytopic_operator.resources import connection_files, secrets_version
from delaytopic_operator.resources.identity import APPLIED_HASH, CONFIG_HASH, config_hash, stamped
from delaytopic_operator.rules.validate import Accepted, Refusal, Subject, check, relay_namespace
from delaytopic_operator.scaling.signals import gather
from delaytopic_operator.topics.actions import CreateTopic, DeleteTopic, GrowTopic, SetConfig, TopicAction
from delaytopic_operator.topics.desired import DesiredTopic, desired_topics, needed_buckets
from delaytopic_operator.topics.strimzi import StrimziTopics, strimzi_place, strimzi_topics

__all__ = [
    "APPLIED_HASH",
    "COMPONENT",
    "CONFIG_HASH",
    "FALSE",
    "FINALIZER",
    "KAFKA_TOPIC",
    "PAUSE",
    "Accepted",
    "Action",
    "AddFinalizer",
    "Apply",
    "CreateTopic",
    "DeclaredRules",
    "Delete",
    "DeleteTopic",
    "DesiredTopic",
    "DoTopic",
    "Fleet",
    "GrowTopic",
    "KafkaView",
    "Key",
    "NamespaceFacts",
    "ObjectCache",
    "Observation",
    "OperatorConfig",
    "Plan",
    "Problem",
    "RecordUnreadable",
    "Refusal",
    "RemoveFinalizer",
    "Role",
    "RouteIndex",
    "RouteRecord",
    "SetConfig",
    "StrimziTopics",
    "Subject",
    "TopicAction",
    "TopicFacts",
    "TopicRecord",
    "Topics",
    "WriteRecord",
    "begin_record",
    "check",
    "config_hash",
    "conflicts_among",
    "connection_files",
    "decide_scaling",
    "declared",
    "desired_children",
    "desired_topics",
    "edit_sentence",
    "fields_of",
    "find_record",
    "gather",
    "identity_of",
    "instant",
    "is_paused",
    "needed_buckets",
    "owner_of",
    "plan",
    "record_document",
    "record_name",
    "record_of",
    "relay_namespace",
    "replicas",
    "secrets_version",
    "stamped",
    "strimzi_place",
    "strimzi_topics",
    "taken_over",
]
