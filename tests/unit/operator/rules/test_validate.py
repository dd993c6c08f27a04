"""Tests of which DelayTopics are acted upon, and what is said to those that are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from delaytopic_api import DelayClass, load_document
from delaytopic_operator.config import OperatorConfig
from delaytopic_operator.model.reconciliation import Key
from delaytopic_operator.rules.validate import Accepted, QuotaUsage, Refusal, Subject, check

KEY = Key("shop", "reminders")
SCRAM = {"type": "ScramSha512", "username": "delay", "passwordSecret": {"secretName": "delay-scram"}}
CONNECTION = {"bootstrapServers": "kafka:9092"}
REDIS = {"type": "RedisZset", "redis": {"url": "redis://redis:6379"}}


def delay_class(name: str = "standard", *, default: bool = False, **spec: Any) -> DelayClass:
    annotations = {"delaytopic.dev/is-default-class": "true"} if default else {}
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"connection": CONNECTION, "backend": REDIS, **spec},
    }
    parsed = load_document(document)
    assert isinstance(parsed, DelayClass)
    return parsed


def verdict(
    *classes: DelayClass,
    labels: Mapping[str, str] | None = None,
    elder_siblings: int = 0,
    conflict: str | None = None,
    config: OperatorConfig | None = None,
    **spec: Any,
) -> Accepted | Refusal:
    usual = {"source": {"topic": "shop.a"}, "target": {"topic": "shop.b"}}
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": {**usual, **spec},
        "status": {"written by": "a newer operator"},
    }
    return check(
        Subject(
            KEY, document, classes, labels or {}, QuotaUsage(elder_siblings, 0), conflict, config or OperatorConfig()
        )
    )


def test_a_class_that_is_marked_default_later_moves_no_delay_topic_that_has_one() -> None:
    before, after = delay_class("standard"), delay_class("fast", default=True)
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": {"source": {"topic": "shop.a"}, "target": {"topic": "shop.b"}},
        "status": {"effective": {"delayClass": "standard"}},
    }

    found = check(Subject(KEY, document, [after, before], {}, QuotaUsage(0, 0), None))

    assert isinstance(found, Accepted)
    assert found.delay_class == before


NARROW = OperatorConfig(namespace="delays", relay_namespaces=["relays"])


@pytest.mark.parametrize(
    ("classes", "spec", "named"),
    [
        (
            [delay_class(default=True, relayNamespace="elsewhere")],
            {},
            "spec.relayNamespace of DelayClass standard: the operator runs no relays in elsewhere",
        ),
        (
            [],
            {"connection": CONNECTION, "backend": REDIS},
            "spec.connection: relays of a connection of its own run beside it: the operator runs no relays in shop",
        ),
    ],
    ids=["of a class", "beside its own connection"],
)
def test_relays_where_the_operator_may_run_none_wait_for_the_platform_team(
    classes: list[DelayClass], spec: dict[str, Any], named: str
) -> None:
    found = verdict(*classes, config=NARROW, **spec)

    remedy = "; the platform team adds it to relayNamespaces of the operator, and nothing has to be tried again"
    assert found == Refusal("RelayNamespaceNotAllowed", named + remedy, stalled=False)


@pytest.mark.parametrize("namespace", ["relays", "delays", None])
def test_relays_run_where_the_operator_may_run_them(namespace: str | None) -> None:
    chosen = {} if namespace is None else {"relayNamespace": namespace}

    assert isinstance(verdict(delay_class(default=True, **chosen), config=NARROW), Accepted)


def test_three_lines_are_enough_with_a_default_class() -> None:
    found = verdict(delay_class("other"), delay_class(default=True))

    assert isinstance(found, Accepted)
    assert (found.settings.class_name, str(found.settings.precision)) == ("standard", "1s")


NO_CLASS = "spec.delayClassName: is required, as no DelayClass is marked default; or set spec.connection"


@pytest.mark.parametrize(
    ("classes", "spec", "refusal"),
    [
        ([], {}, Refusal("ClassNotFound", NO_CLASS, stalled=False)),
        (
            [delay_class()],
            {"delayClassName": "fast"},
            Refusal(
                "ClassNotFound", 'spec.delayClassName: there is no DelayClass "fast"; there is: standard', stalled=False
            ),
        ),
        (
            [delay_class(default=True, access={"sourceTopics": ["{namespace}.*"]})],
            {"source": {"topic": "bank.a"}},
            "SourceNotAllowed: spec.source.topic",
        ),
        (
            [delay_class(default=True, access={"targetTopics": ["{namespace}.*"]})],
            {"target": {"topic": "bank.b"}},
            "TargetNotAllowed: spec.target.topic",
        ),
        (
            [delay_class(default=True, access={"sourceTopics": ["shop.*"], "targetTopics": ["{namespace}.*"]})],
            {"deadLetter": {"topic": "bank.dlq"}},
            "TargetNotAllowed: spec.deadLetter.topic",
        ),
        (
            [delay_class(default=True, access={"namespaceSelector": {"matchLabels": {"delays": "yes"}}})],
            {},
            "NamespaceNotAllowed: metadata.namespace",
        ),
        (
            [delay_class(default=True, limits={"minPrecision": "100ms"})],
            {"precision": "50ms"},
            "LimitExceeded: spec.precision",
        ),
        (
            [delay_class(default=True, limits={"maxDelay": "24h"})],
            {"schedule": {"maxDelay": "48h"}},
            "LimitExceeded: spec.schedule.maxDelay",
        ),
        (
            [delay_class(default=True, limits={"maxReplicas": 4})],
            {"autoscaling": {"maxReplicas": 8}},
            "LimitExceeded: spec.autoscaling.maxReplicas",
        ),
        (
            [delay_class(default=True)],
            {"relay": {"image": "busybox"}},
            "InvalidSpec: spec.relay.image: is only allowed with an inline spec.connection",
        ),
        (
            [delay_class(default=True)],
            {"relay": {"resources": {"limits": {"memory": "10Mi"}}}},
            'InvalidSpec: spec.relay.resources.limits.memory: "10Mi" is too little',
        ),
        (
            [delay_class(default=True)],
            {"relay": {"podTemplate": {"spec": {"hostNetwork": True}}}},
            "InvalidSpec: spec.relay.podTemplate.spec.hostNetwork",
        ),
        (
            [],
            {"connection": CONNECTION, "backend": {"type": "RedisZset"}},
            "InvalidSpec: spec.backend.redis: is required for type RedisZset",
        ),
        (
            [delay_class(default=True, backend={"type": "KafkaBuckets"})],
            {"backend": {"type": "RedisZset"}},
            "BackendNotAllowed: spec.backend.type: RedisZset is not allowed: DelayClass standard has no Redis",
        ),
        (
            [],
            {
                "connection": {**CONNECTION, "authentication": SCRAM},
                "backend": {"type": "RedisZset", "redis": {"url": "unix:///r"}},
            },
            "InvalidSpec: spec.backend.redis.url: ",
        ),
        ([delay_class(default=True)], {"source": {}}, "InvalidSpec: spec.source.topic: is required"),
        ([delay_class(default=True)], {"sorce": {}}, "InvalidSpec: spec.sorce: is not a field; did you mean source?"),
    ],
)
def test_what_is_not_allowed_is_refused_with_the_field_to_change(
    classes: list[DelayClass], spec: dict[str, Any], refusal: Refusal | str
) -> None:
    found = verdict(*classes, **spec)

    assert isinstance(found, Refusal), found
    if isinstance(refusal, Refusal):
        assert found == refusal
    else:
        assert f"{found.reason}: {found.message}".startswith(refusal)


def test_the_class_of_another_is_no_reason_to_stall() -> None:
    two_authorities = {
        "trustedCertificates": [{"secretName": name, "certificate": "ca.crt"} for name in ("old", "new")]
    }
    waiting = verdict(delay_class(default=True, connection={**CONNECTION, "tls": two_authorities}))
    own_fault = verdict(delay_class(default=True), relay={"image": "busybox"})

    assert isinstance(waiting, Refusal)
    assert isinstance(own_fault, Refusal)
    assert (waiting.reason, waiting.stalled, own_fault.reason, own_fault.stalled) == (
        "InvalidClass",
        False,
        "InvalidSpec",
        True,
    )
    assert waiting.message.startswith("DelayClass standard: spec.connection.tls.trustedCertificates[1]: ")


@pytest.mark.parametrize(("elder_siblings", "accepted"), [(1, True), (2, False), (3, False)])
def test_a_class_allows_so_many_in_a_namespace_and_the_eldest_stay(elder_siblings: int, accepted: bool) -> None:
    most = delay_class(default=True, limits={"maxDelayTopicsPerNamespace": 2})

    found = verdict(most, elder_siblings=elder_siblings)

    refusal = Refusal(
        "LimitExceeded", "DelayClass standard allows 2 DelayTopics in a namespace; remove another one first"
    )
    assert isinstance(found, Accepted) if accepted else found == refusal


def test_an_elder_on_the_same_topics_comes_first() -> None:
    found = verdict(delay_class(default=True), conflict="the source topic shop.a is that of shop/other already")

    assert found == Refusal("ResourceConflict", "the source topic shop.a is that of shop/other already")


def test_everything_that_is_wrong_with_a_field_is_told_at_once() -> None:
    strict = delay_class(default=True, access={"sourceTopics": ["x.*"], "targetTopics": ["x.*"]})

    found = verdict(strict)

    assert isinstance(found, Refusal)
    assert [part.partition(":")[0] for part in found.message.split("; ")] == [
        "spec.source.topic",
        "spec.target.topic",
        "spec.deadLetter.topic",
    ]
