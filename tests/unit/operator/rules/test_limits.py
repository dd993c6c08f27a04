"""Tests of the limits of a class: partitions, retention, settings, resources, fields of pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operator.rules.test_validate import KEY, delay_class, verdict

from delaytopic_operator.config import InlineConnections, OperatorConfig
from delaytopic_operator.rules.validate import Accepted, QuotaUsage, Refusal, Subject, check


def told(of_class: dict[str, Any], **spec: Any) -> str:
    """Return what a DelayTopic of this class is refused for, without the word for it."""
    found = verdict(delay_class(default=True, **of_class), **spec)
    assert isinstance(found, Refusal)
    assert (found.reason, found.stalled) == ("LimitExceeded", True)
    return found.message


@pytest.mark.parametrize(
    ("limits", "spec", "message"),
    [
        (
            {"maxPartitions": 12},
            {"source": {"topic": "shop.a", "partitions": 13}},
            "spec.source.partitions: 13 is too many: DelayClass standard allows up to 12",
        ),
        (
            {"maxPartitions": 12},
            {"deadLetter": {"topic": "shop.c", "partitions": 9_999}},
            "spec.deadLetter.partitions: 9999 is too many: DelayClass standard allows up to 12",
        ),
        (
            {"maxRetention": "1000h"},
            {"target": {"topic": "shop.b", "retention": "1001h"}},
            "spec.target.retention: 1001h is too long: DelayClass standard allows up to 1000h",
        ),
        (
            {"maxRetention": "1000h"},
            {"target": {"topic": "shop.b", "config": {"retention.ms": "-1"}}},
            'spec.target.config["retention.ms"]: -1 is too long: DelayClass standard allows up to 3600000000',
        ),
        (
            {"maxRetention": "1000h"},
            {"target": {"topic": "shop.b", "config": {"cleanup.policy": "compact"}}},
            'spec.target.config["cleanup.policy"]: compact keeps records for ever: DelayClass standard allows up to '
            "1000h; add delete",
        ),
        (
            {},
            {"target": {"topic": "shop.b", "config": {"segment.bytes": "14"}}},
            'spec.target.config["segment.bytes"]: is not allowed: DelayClass standard allows cleanup.policy, '
            "compression.type, delete.retention.ms, message.timestamp.*, min.insync.replicas, retention.*",
        ),
        (
            {"allowedTopicConfig": []},
            {"source": {"topic": "shop.a", "config": {"compression.type": "zstd"}}},
            'spec.source.config["compression.type"]: is not allowed: DelayClass standard allows none',
        ),
        (
            {"maxRelayResources": {"cpu": "250m"}},
            {"relay": {"resources": {"limits": {"cpu": "251m"}}}},
            "spec.relay.resources.limits.cpu: 251m is too much: DelayClass standard allows up to 250m",
        ),
        (
            {"maxRelayResources": {"memory": "1Gi"}},
            {"relay": {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}},
            "spec.relay.resources.requests.memory: 2Gi is too much: DelayClass standard allows up to 1Gi",
        ),
        (
            {"maxRelayResources": {"memory": "1Gi"}},
            {"relay": {"resources": {"requests": {"cpu": "1"}}}},
            "spec.relay.resources.limits.memory: is required: DelayClass standard allows up to 1Gi",
        ),
        (
            {},
            {"relay": {"resources": {"limits": {"nvidia.com/gpu": 8}}}},
            'spec.relay.resources.limits["nvidia.com/gpu"]: is not allowed: DelayClass standard allows cpu, memory',
        ),
    ],
)
def test_topics_and_resources_beyond_the_class_are_refused(
    limits: dict[str, Any], spec: dict[str, Any], message: str
) -> None:
    assert told({"limits": limits}, **spec) == message


NONE = "is not allowed: DelayClass standard allows none"


@pytest.mark.parametrize(
    ("template", "field", "message"),
    [
        (
            {"metadata": {"labels": {"app": "payments"}}},
            'metadata.labels["app"]',
            NONE,
        ),
        (
            {"metadata": {"annotations": {"a/b": "c"}}},
            'metadata.annotations["a/b"]',
            NONE,
        ),
        (
            {"spec": {"nodeSelector": {"pool": "x"}}},
            'spec.nodeSelector["pool"]',
            NONE,
        ),
        (
            {"spec": {"tolerations": [{"operator": "Exists"}]}},
            "spec.tolerations[0].key",
            "without a key is not allowed: DelayClass standard allows none",
        ),
        (
            {"spec": {"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}},
            "spec.tolerations[0].key",
            "node-role.kubernetes.io/control-plane is not allowed: DelayClass standard allows none",
        ),
        (
            {"spec": {"priorityClassName": "system-cluster-critical"}},
            "spec.priorityClassName",
            "system-cluster-critical is not allowed: DelayClass standard allows none",
        ),
        (
            {"spec": {"affinity": {"podAntiAffinity": {}}}},
            "spec.affinity",
            NONE,
        ),
    ],
)
def test_nothing_that_reaches_other_pods_or_nodes_is_allowed_by_default(
    template: dict[str, Any], field: str, message: str
) -> None:
    assert told({}, relay={"podTemplate": template}) == f"spec.relay.podTemplate.{field}: {message}"


def test_what_the_class_says_of_pods_cannot_be_changed_even_where_more_is_allowed() -> None:
    allowed = {"labels": ["*"], "priorityClassNames": ["*"], "affinity": True}
    of_class = {
        "metadata": {"labels": {"team": "platform"}},
        "spec": {"priorityClassName": "low", "affinity": {"nodeAffinity": {}}},
    }
    asked = {
        "metadata": {"labels": {"team": "shop"}},
        "spec": {"priorityClassName": "high", "affinity": {"podAffinity": {}}},
    }

    message = told(
        {"relay": {"podTemplate": of_class}, "limits": {"allowedPodTemplate": allowed}}, relay={"podTemplate": asked}
    )

    assert message.split("; ") == [
        'spec.relay.podTemplate.metadata.labels["team"]: is not allowed: DelayClass standard sets it to platform',
        "spec.relay.podTemplate.spec.priorityClassName: high is not allowed: DelayClass standard sets it to low",
        "spec.relay.podTemplate.spec.affinity: is not allowed: DelayClass standard sets it",
    ]


def test_what_the_class_allows_may_be_asked_for() -> None:
    of_class = delay_class(
        default=True,
        limits={
            "maxPartitions": 12,
            "maxRetention": "1000h",
            "maxRelayResources": {"cpu": "2", "memory": "1Gi"},
            "allowedPodTemplate": {
                "labels": ["team", "shop/*"],
                "tolerations": ["spot"],
                "priorityClassNames": ["t-*"],
            },
        },
    )
    found = verdict(
        of_class,
        source={"topic": "shop.a", "partitions": 12, "config": {"retention.bytes": "1000"}},
        relay={
            "resources": {"limits": {"cpu": 2, "memory": "1024Mi"}},
            "podTemplate": {
                "metadata": {"labels": {"team": "a", "shop/b": "c"}},
                "spec": {"tolerations": [{"key": "spot", "operator": "Exists"}], "priorityClassName": "t-1"},
            },
        },
    )

    assert isinstance(found, Accepted)
    assert str(found.settings.source.retention) == "888h"


def test_the_source_is_kept_no_longer_than_allowed_where_nobody_says_how_long() -> None:
    found = verdict(delay_class(default=True, limits={"maxRetention": "800h"}))

    assert isinstance(found, Accepted)
    assert str(found.settings.source.retention) == "800h"


KAFKA = {"bootstrapServers": "kafka.shop.svc:9092, 10.0.0.1:9092"}


def inline(
    of: InlineConnections, *, redis: dict[str, Any] | None = None, kafka: str = "", issuer: str = ""
) -> Accepted | Refusal:
    """A DelayTopic with a connection of its own."""
    oauth = {"tokenEndpointUrl": issuer, "credentials": {"secretName": "client"}}
    authentication = {"authentication": {"type": "OAuthBearer", "oauth": oauth}} if issuer else {}
    spec: dict[str, Any] = {
        "source": {"topic": "shop.a"},
        "target": {"topic": "shop.b"},
        "connection": {"bootstrapServers": kafka or KAFKA["bootstrapServers"], **authentication},
        "backend": {"type": "RedisZset", "redis": redis} if redis else {"type": "KafkaBuckets"},
    }
    document = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"namespace": KEY.namespace, "name": KEY.name},
        "spec": spec,
    }
    return check(Subject(KEY, document, [], {}, QuotaUsage(0, 0), None, OperatorConfig(inline_connections=of)))


OWN_HOSTS = InlineConnections(allowed_hosts=["*.shop.svc", "redis.shop"])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (
            inline(InlineConnections(enabled=False)),
            "spec.connection: is not allowed by this operator; name a DelayClass in spec.delayClassName",
        ),
        (
            inline(OWN_HOSTS),
            "spec.connection.bootstrapServers: 10.0.0.1 is not allowed: this operator allows *.shop.svc, redis.shop",
        ),
        (
            inline(OWN_HOSTS, kafka="kafka.shop.svc:9092,[fd00::1]:9092"),
            "spec.connection.bootstrapServers: fd00::1 is not allowed: this operator allows *.shop.svc, redis.shop",
        ),
        (
            inline(OWN_HOSTS, kafka="a.shop.svc:1", redis={"url": "redis://169.254.169.254:80"}),
            "spec.backend.redis.url: 169.254.169.254 is not allowed: this operator allows *.shop.svc, redis.shop",
        ),
        (
            inline(OWN_HOSTS, kafka="a.shop.svc:1", issuer="http://169.254.169.254/latest"),
            "spec.connection.authentication.oauth.tokenEndpointUrl: 169.254.169.254 is not allowed: this operator "
            "allows *.shop.svc, redis.shop",
        ),
        (
            inline(OWN_HOSTS, kafka="a.shop.svc:1", redis={"urlSecret": {"secretName": "redis"}}),
            "spec.backend.redis.urlSecret: is not allowed, as it hides the host; write url: this operator allows "
            "*.shop.svc, redis.shop",
        ),
    ],
)
def test_hosts_that_the_operator_does_not_allow_are_refused_before_anything_is_asked(
    found: Accepted | Refusal, message: str
) -> None:
    assert found == Refusal("ConnectionNotAllowed", message)


def test_hosts_that_the_operator_allows_are_asked() -> None:
    allowed = inline(OWN_HOSTS, kafka="a.shop.svc:1", redis={"url": "rediss://redis.shop:6380/0"})

    assert isinstance(allowed, Accepted)
    assert isinstance(inline(InlineConnections(), redis={"urlSecret": {"secretName": "redis"}}), Accepted)


def test_a_delay_topic_of_the_default_class_brings_no_redis_of_its_own() -> None:
    stolen = {"url": "redis://evil:6379", "passwordSecret": {"secretName": "delay-scram"}}

    found = verdict(delay_class(default=True), backend={"type": "RedisZset", "redis": stolen})

    message = "spec.backend.redis: is not allowed: DelayClass standard brings its own Redis"
    assert found == Refusal("ConnectionNotAllowed", message)


def test_a_namespace_has_no_more_partitions_than_its_class_allows() -> None:
    limited = delay_class(default=True, limits={"maxPartitionsPerNamespace": 100})
    spec = {name: {"topic": f"shop.{name}", "partitions": 20} for name in ("source", "target", "deadLetter")}

    def judged(quota_usage: QuotaUsage) -> Accepted | Refusal:
        document = {
            "apiVersion": "delaytopic.dev/v1beta1",
            "kind": "DelayTopic",
            "metadata": {"namespace": KEY.namespace, "name": KEY.name},
            "spec": spec,
        }
        return check(Subject(KEY, document, [limited], {}, quota_usage, None))

    assert isinstance(judged(QuotaUsage(3, 40)), Accepted)
    assert judged(QuotaUsage(3, 41)) == Refusal(
        "LimitExceeded",
        "spec.source.partitions: its topics have 60 partitions, and those of older DelayTopics of the namespace 41: "
        "DelayClass standard allows 100 together; ask for fewer, or remove another one",
    )
