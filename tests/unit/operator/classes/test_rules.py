"""Faults of a DelayClass for which no DelayTopic can use it."""

from __future__ import annotations

from typing import Any

import pytest

from delaytopic_api import DelayClass, load_document
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.rules.delay_class import check_class
from delaytopic_operator.rules.validate import Refusal

CONFIG = OperatorConfig(namespace="delays", relay_namespaces=["relays"])
KAFKA = {"bootstrapServers": "kafka:9092"}
REDIS = {"type": "RedisZset", "redis": {"url": "redis://redis:6379/0"}}


def document(name: str = "standard", *, default: bool = False, **spec: Any) -> dict[str, Any]:
    annotations = {"delaytopic.dev/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"connection": KAFKA, **spec},
    }


def parsed(name: str, *, default: bool = False) -> DelayClass:
    found = load_document(document(name, default=default))
    assert isinstance(found, DelayClass)
    return found


@pytest.mark.parametrize(
    "spec",
    [{}, {"backend": REDIS}, {"relayNamespace": "relays"}, {"relayNamespace": "delays"}],
    ids=["Kafka alone", "Redis", "relays elsewhere", "relays beside the operator"],
)
def test_a_class_that_can_be_used_is_accepted(spec: dict[str, Any]) -> None:
    assert isinstance(check_class(document(**spec), [parsed("standard")], CONFIG), DelayClass)


def test_a_status_that_cannot_be_read_is_no_reason_against_it() -> None:
    assert isinstance(check_class({**document(), "status": {"users": "many"}}, [], CONFIG), DelayClass)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({"backend": {"type": "RedisZset"}}, "InvalidSpec", "DelayClass"),
        (
            {"backend": {"type": "RedisZset", "redis": {"url": "unix:///redis.sock"}}},
            "InvalidSpec",
            'DelayClass standard: spec.backend.redis.url: "unix:///redis.sock" cannot be reached from a pod; '
            "use redis:// or rediss://",
        ),
        (
            {"relay": {"resources": {"limits": {"memory": "1Mi"}}}},
            "InvalidClass",
            'spec.relay.resources.limits.memory: "1Mi" is too little; a relay needs at least 128Mi',
        ),
        (
            {"relay": {"podTemplate": {"spec": {"hostNetwork": True}}}},
            "InvalidSpec",
            "DelayClass standard: spec.relay.podTemplate.spec.hostNetwork: is not a field; allowed: nodeSelector, "
            "tolerations, affinity, topologySpreadConstraints, priorityClassName",
        ),
        (
            {"audit": {"mode": "Kubernetes"}},
            "InvalidClass",
            "spec.audit.mode: Kubernetes needs audit.driverAccount of the operator; audits run as mode Job",
        ),
        (
            {"relayNamespace": "elsewhere"},
            "RelayNamespaceNotAllowed",
            "spec.relayNamespace: the operator runs no relays in elsewhere; add it to its relayNamespaces",
        ),
    ],
    ids=[
        "no Redis",
        "a socket",
        "too little memory",
        "a pod template",
        "no driver",
        "relays out of sight",
    ],
)
def test_a_class_that_nobody_can_use_is_refused_with_the_field(spec: dict[str, Any], reason: str, message: str) -> None:
    verdict = check_class(document(**spec), [], CONFIG)

    assert isinstance(verdict, Refusal)
    assert verdict.reason == reason
    assert verdict.message == message or reason == "InvalidSpec"


def test_of_two_default_classes_each_names_the_other() -> None:
    both = [parsed("gold", default=True), parsed("standard", default=True), parsed("plain")]

    assert check_class(document(default=True), both, CONFIG) == Refusal(
        "SeveralDefaults",
        "gold is marked default, too: DelayTopics that name no class get none; mark one only",
    )
