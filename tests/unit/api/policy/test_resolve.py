from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import DATA

from delaytopic_api import (
    DelayClass,
    DelayTopic,
    InvalidDocument,
    Refused,
    class_for,
    class_in_force,
    load_document,
    load_documents,
    resolve,
)
from delaytopic_api.documents import (
    AutoscalingSettings,
    BackendSettings,
    SchedulerOptions,
    ScheduleSettings,
    Settings,
    SigningKeySecret,
    SloSettings,
    TopicSettings,
)
from delaytopic_api.values import (
    AutoscalingMode,
    BackendType,
    Compression,
    DeletionPolicy,
    Dialect,
    Duration,
    Guarantee,
    Ids,
    Management,
    Partitioning,
    Percent,
    Quantity,
    ScaleToZero,
    Suspend,
    TopicProvisioning,
)

API_DATA = DATA / "api"


def topic_with(name: str = "reminders", namespace: str = "shop", **spec: Any) -> DelayTopic:
    content = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayTopic",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": {"topic": "shop.reminders.delayed"}, "target": {"topic": "shop.reminders"}} | spec,
    }
    topic = load_document(content)
    assert isinstance(topic, DelayTopic)
    return topic


def class_with(name: str = "standard", default: bool = False, **spec: Any) -> DelayClass:
    annotations = {"delaytopic.dev/is-default-class": "true"} if default else {}
    content = {
        "apiVersion": "delaytopic.dev/v1beta1",
        "kind": "DelayClass",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"connection": {"bootstrapServers": "kafka:9092"}} | spec,
    }
    delay_class = load_document(content)
    assert isinstance(delay_class, DelayClass)
    return delay_class


def full_class() -> DelayClass:
    [delay_class] = load_documents((API_DATA / "accepted_delay_class.yaml").read_text())
    assert isinstance(delay_class, DelayClass)
    return delay_class


def refusal_of(topic: DelayTopic, delay_class: DelayClass | None = None, **labels: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        resolve(topic, delay_class, labels or None)
    return [line.removeprefix("DelayTopic shop/reminders: ") for line in str(refused.value).splitlines()]


def test_without_a_class_the_documented_defaults_are_in_force() -> None:
    assert resolve(topic_with()) == Settings(
        namespace="shop",
        name="reminders",
        class_name=None,
        group_id="delaytopic.shop.reminders",
        source=TopicSettings("shop.reminders.delayed", Management.CREATE, None, None, Duration("888h"), {}),
        target=TopicSettings("shop.reminders", Management.CREATE, None, None, None, {}),
        dead_letter=TopicSettings("shop.reminders.delayed.dlq", Management.CREATE, None, None, None, {}),
        history=None,
        outcomes=None,
        told=[],
        topic_provisioning=TopicProvisioning.DIRECT,
        allowed_topics=[],
        partitioning=Partitioning.BY_KEY,
        compression=Compression.AUTO,
        schedule=ScheduleSettings(Dialect.NATIVE, None, None, Duration("720h"), Ids.BY_HEADER),
        precision=Duration("1s"),
        guarantee=Guarantee.EXACTLY_ONCE,
        backend=BackendSettings(BackendType.KAFKA_BUCKETS, "delaytopic.shop.reminders", None),
        connection=None,
        autoscaling=AutoscalingSettings(
            mode=AutoscalingMode.OPERATOR,
            replicas=1,
            min_replicas=1,
            max_replicas=None,
            scale_to_zero=ScaleToZero.NEVER,
            look_ahead=Duration("10m"),
            scale_down_stabilization=Duration("5m"),
            target_utilization=Percent("60%"),
        ),
        slo=SloSettings(Duration("5s"), Percent("99.9%"), Duration("720h")),
        suspend=Suspend.NONE,
        deletion_policy=DeletionPolicy.DRAIN,
        drain_timeout=Duration("15m"),
    )


def test_a_class_says_what_the_topic_does_not() -> None:
    delay_class = full_class()

    settings = resolve(topic_with(), delay_class)

    assert (settings.class_name, settings.precision, settings.schedule.max_delay, settings.guarantee) == (
        "standard",
        "2s",
        "168h",
        Guarantee.AT_LEAST_ONCE,
    )
    assert (settings.source.partitions, settings.source.replication_factor, settings.source.retention) == (
        12,
        3,
        "336h",
    )
    assert (settings.drain_timeout, settings.autoscaling.target_utilization) == ("30m", "70%")
    assert settings.autoscaling.max_replicas == 24
    assert settings.connection == delay_class.spec.connection
    assert settings.backend == BackendSettings(
        BackendType.REDIS_ZSET,
        "delaytopic.shop.reminders",
        delay_class.spec.backend.redis,
        max_redis_memory=delay_class.spec.limits.max_redis_memory,
    )


@pytest.mark.parametrize("type_", ["RedisZset", "KafkaBuckets"])
def test_the_class_brings_the_keys_that_sign_what_waits_in_either_backend(type_: str) -> None:
    delay_class = full_class()
    keys = SigningKeySecret(secret_name="signing")
    spec = delay_class.spec.model_copy(
        update={"backend": delay_class.spec.backend.model_copy(update={"signing_key": keys})}
    )

    settings = resolve(topic_with(backend={"type": type_}), delay_class.model_copy(update={"spec": spec}))

    assert settings.backend.signing_key == keys


def test_a_topic_of_the_default_class_chooses_neither_redis_nor_keys_whose_secrets_are_not_its_own() -> None:
    backend = {
        "type": "RedisZset",
        "redis": {"urlSecret": {"secretName": "of-another-team"}},
        "signingKey": {"secretName": "of-another-team"},
    }

    assert refusal_of(topic_with(backend=backend), full_class()) == [
        "spec.backend.redis: is not allowed: DelayClass standard brings its own Redis",
        "spec.backend.signingKey: is not allowed: DelayClass standard brings its own keys",
    ]


def test_what_the_topic_says_goes_before_the_class() -> None:
    topic = topic_with(
        source={"topic": "shop.reminders.delayed", "partitions": 6, "replicationFactor": 2, "retention": "1000h"},
        schedule={"maxDelay": "24h"},
        precision="100ms",
        guarantee="ExactlyOnce",
        backend={"type": "KafkaBuckets"},
        autoscaling={"targetUtilization": "50%", "maxReplicas": 6},
        drainTimeout="1m",
    )

    settings = resolve(topic, full_class())

    assert (settings.source.partitions, settings.source.replication_factor, settings.source.retention) == (
        6,
        2,
        "1000h",
    )
    assert (settings.schedule.max_delay, settings.precision, settings.guarantee) == ("24h", "100ms", "ExactlyOnce")
    assert settings.backend == BackendSettings(BackendType.KAFKA_BUCKETS, "delaytopic.shop.reminders", None)
    assert (settings.autoscaling.target_utilization, settings.autoscaling.max_replicas) == ("50%", 6)
    assert settings.drain_timeout == "1m"


def test_defaults_bend_to_the_limits_of_the_class() -> None:
    settings = resolve(topic_with(), class_with(limits={"maxDelay": "1h", "minPrecision": "5s"}))

    assert (settings.schedule.max_delay, settings.precision) == ("1h", "5s")


def test_a_fixed_delay_is_the_longest_delay_and_keeps_no_index_of_ids() -> None:
    settings = resolve(topic_with(schedule={"fixedDelay": "30s"}))

    assert settings.schedule == ScheduleSettings(Dialect.NATIVE, None, Duration("30s"), Duration("30s"), Ids.DISABLED)
    assert settings.source.retention == "168h30s"


def test_the_lateness_objective_is_five_times_the_precision() -> None:
    assert resolve(topic_with(precision="50ms")).slo.lateness == "250ms"


def test_an_inline_connection_goes_with_its_own_redis() -> None:
    redis = {"url": "redis://redis:6379/0"}
    topic = topic_with(connection={"bootstrapServers": "mine:9092"}, backend={"type": "RedisZset", "redis": redis})

    settings = resolve(topic, class_for(topic, [class_with(default=True)]))

    assert (settings.connection, settings.backend.redis) == (
        topic.spec.connection,
        topic.spec.backend and topic.spec.backend.redis,
    )


@pytest.mark.parametrize(
    ("spec", "class_spec", "lines"),
    [
        (
            {"schedule": {"maxDelay": "25h"}},
            {"limits": {"maxDelay": "24h"}},
            ["spec.schedule.maxDelay: 25h is too long: DelayClass standard allows up to 24h"],
        ),
        (
            {"schedule": {"fixedDelay": "25h"}},
            {"limits": {"maxDelay": "24h"}},
            ["spec.schedule.fixedDelay: 25h is too long: DelayClass standard allows up to 24h"],
        ),
        (
            {"schedule": {"defaultDelay": "23h"}},
            {"defaults": {"maxDelay": "22h"}},
            ["spec.schedule.defaultDelay: is 23h, longer than maxDelay (22h)"],
        ),
        (
            {"precision": "50ms"},
            {"limits": {"minPrecision": "100ms"}},
            ["spec.precision: 50ms is too fine: DelayClass standard allows 100ms or coarser"],
        ),
        (
            {"autoscaling": {"minReplicas": 5, "maxReplicas": 6}, "relay": {"replicas": 7}},
            {"limits": {"maxReplicas": 4}},
            [
                "spec.autoscaling.minReplicas: 5 is too many: DelayClass standard allows up to 4",
                "spec.autoscaling.maxReplicas: 6 is too many: DelayClass standard allows up to 4",
                "spec.relay.replicas: 7 is too many: DelayClass standard allows up to 4",
            ],
        ),
        (
            {"backend": {"type": "RedisZset"}},
            {},
            ["spec.backend.type: RedisZset is not allowed: DelayClass standard has no Redis; use KafkaBuckets"],
        ),
        (
            {"source": {"topic": "bakery.delayed"}, "target": {"topic": "bakery.due"}},
            {"access": {"sourceTopics": ["{namespace}.*"], "targetTopics": ["{namespace}.*", "shared.*"]}},
            [
                "spec.source.topic: bakery.delayed is not allowed as a source: DelayClass standard allows shop.*",
                "spec.target.topic: bakery.due is not allowed as a target: DelayClass standard allows shop.*, shared.*",
                "spec.deadLetter.topic: bakery.delayed.dlq is not allowed as a dead letter: "
                "DelayClass standard allows shop.*, shared.*",
            ],
        ),
        (
            {"target": {"topic": "shop.reminders", "allowedTopics": ["shop.eu.*", "*"]}},
            {"access": {"targetTopics": ["{namespace}.*"]}},
            ["spec.target.allowedTopics[1]: * reaches beyond what DelayClass standard allows: shop.*"],
        ),
        (
            {},
            {"access": {"targetTopics": []}},
            [
                "spec.target.topic: shop.reminders is not allowed as a target: DelayClass standard allows none",
                "spec.deadLetter.topic: shop.reminders.delayed.dlq is not allowed as a dead letter: "
                "DelayClass standard allows none",
            ],
        ),
        (
            {"schedule": {"scheduler": {"history": {"topic": "bakery.orders", "management": "Adopt"}}}},
            {},
            [
                "spec.schedule.scheduler.history.topic: bakery.orders is not allowed as a history: DelayClass "
                "standard allows shop.*",
                "spec.schedule.scheduler.history.management: bakery.orders must not be adopted: DelayClass standard "
                "allows none; use "
                'Observe, or ask who looks after the class for access.adoptTopics: ["bakery.orders"]',
            ],
        ),
        (
            {"schedule": {"karafka": {}, "maxDelay": "1h"}},
            {"limits": {"maxRetention": "720h"}},
            [
                'spec.source.config["cleanup.policy"]: is required: dialect Karafka compacts its source, which keeps '
                "records for ever, and DelayClass standard allows up to 720h; write compact,delete"
            ],
        ),
        (
            {"deadLetter": {"topic": "bakery.orders"}},
            {"access": {"sourceTopics": ["*"]}},
            ["spec.deadLetter.topic: bakery.orders is not allowed as a dead letter: DelayClass standard allows shop.*"],
        ),
        (
            {"target": {"topic": "shop.reminders", "management": "Adopt"}},
            {},
            [
                "spec.target.management: shop.reminders must not be adopted: DelayClass standard allows none; use "
                'Observe, or ask who looks after the class for access.adoptTopics: ["shop.reminders"]'
            ],
        ),
        (
            {"source": {"topic": "shop.old", "management": "Adopt"}},
            {"access": {"adoptTopics": ["{namespace}.legacy.*"]}},
            [
                "spec.source.management: shop.old must not be adopted: DelayClass standard allows shop.legacy.*; use "
                'Observe, or ask who looks after the class for access.adoptTopics: ["shop.old"]'
            ],
        ),
    ],
)
def test_what_a_class_does_not_allow_is_refused_with_the_path_and_what_it_allows(
    spec: dict[str, Any], class_spec: dict[str, Any], lines: list[str]
) -> None:
    assert refusal_of(topic_with(**spec), class_with(**class_spec)) == lines


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            {"source": {"topic": "a", "retention": "24h"}},
            "spec.source.retention: is 24h, shorter than maxDelay (720h): "
            "pending records would be lost with the backend",
        ),
        (
            {"source": {"topic": "a", "config": {"retention.ms": "1000"}}},
            'spec.source.config["retention.ms"]: is 1000, shorter than maxDelay (720h): '
            "pending records would be lost with the backend",
        ),
        (
            {"precision": "1h", "schedule": {"maxDelay": "30m"}},
            "spec.schedule.maxDelay: is 30m, shorter than precision (1h)",
        ),
        (
            {"schedule": {"defaultDelay": "721h"}},
            "spec.schedule.defaultDelay: is 721h, longer than maxDelay (720h)",
        ),
        (
            {"slo": {"thresholds": [{"lateness": "5000ms", "objective": "99%"}]}},
            "spec.slo.thresholds: each needs a lateness of its own; 5000ms is that of slo.lateness",
        ),
        (
            {
                "source": {"topic": "a", "partitions": 4},
                "target": {"topic": "b", "partitions": 3, "partitioning": "SamePartition"},
            },
            "spec.target.partitions: is 3, fewer than the source's 4; partitioning SamePartition needs as many",
        ),
    ],
)
def test_what_contradicts_the_defaults_is_refused_too(spec: dict[str, Any], line: str) -> None:
    assert refusal_of(topic_with(**spec)) == [line]


def test_a_dialect_that_names_schedules_by_key_has_them_and_a_source_that_keeps_them() -> None:
    settings = resolve(topic_with(schedule={"scheduler": {"graceInterval": "1h"}}))

    assert (settings.schedule.ids, settings.source.retention) == (Ids.BY_KEY, None)
    assert settings.history == TopicSettings("shop.reminders.delayed.history", Management.CREATE, None, None, None, {})
    assert settings.schedule.scheduler == SchedulerOptions(grace_interval=Duration("1h"))


@pytest.mark.parametrize("dialect", ["blackBox", "cesium", "timebridge"])
def test_a_dialect_without_names_has_none_and_no_history(dialect: str) -> None:
    settings = resolve(topic_with(schedule={dialect: {}}))

    assert (settings.schedule.ids, settings.history, settings.source.retention) == (Ids.DISABLED, None, "888h")


def test_endless_retention_is_long_enough() -> None:
    topic = topic_with(source={"topic": "a", "config": {"retention.ms": "-1"}})

    assert resolve(topic).source == TopicSettings("a", Management.CREATE, None, None, None, {"retention.ms": "-1"})


def test_a_namespace_without_the_labels_of_the_class_is_refused() -> None:
    delay_class = class_with(access={"namespaceSelector": {"matchLabels": {"delay": "yes", "team": "a"}}})

    assert refusal_of(topic_with(), delay_class, delay="yes") == [
        "metadata.namespace: shop is not allowed: DelayClass standard is for namespaces labelled delay=yes, team=a"
    ]


def test_a_namespace_with_the_labels_of_the_class_may_use_it() -> None:
    delay_class = class_with(access={"namespaceSelector": {"matchLabels": {"delay": "yes"}}})

    settings = resolve(topic_with(), delay_class, {"delay": "yes", "team": "a"})

    assert settings.class_name == "standard"


def test_without_a_cluster_there_are_no_labels_to_check() -> None:
    delay_class = class_with(access={"namespaceSelector": {"matchLabels": {"delay": "yes"}}})

    assert resolve(topic_with(), delay_class, None).class_name == "standard"


def test_the_named_class_is_used_even_if_another_is_the_default() -> None:
    classes = [class_with("standard", default=True), class_with("fast")]

    assert class_for(topic_with(delayClassName="fast"), classes) == classes[1]


def test_a_topic_that_names_no_class_gets_the_default_class() -> None:
    classes = [class_with("fast"), class_with("standard", default=True)]

    assert class_for(topic_with(), classes) == classes[1]


def test_a_topic_keeps_the_class_in_force_whichever_the_default_is_by_now() -> None:
    classes = [class_with("fast", default=True), class_with("standard")]

    assert class_for(topic_with(), classes, "standard") == classes[1]
    assert class_for(topic_with(delayClassName="fast"), classes, "standard") == classes[0]


def test_a_class_in_force_that_is_gone_is_refused_and_no_other_one_takes_its_place() -> None:
    with pytest.raises(Refused) as refused:
        class_for(topic_with(), [class_with("fast", default=True)], "standard")

    assert str(refused.value) == (
        'DelayTopic shop/reminders: spec.delayClassName: there is no DelayClass "standard"; there is: fast'
    )


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ({"effective": {"delayClass": "standard"}}, "standard"),
        ({"effective": {"delayClass": ""}}, None),
        ({"effective": {"delayClass": 7}}, None),
        ({"effective": ["standard"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_class_in_force_is_read_from_any_status(status: object, name: str | None) -> None:
    assert class_in_force({"status": status}) == name


def test_without_a_default_class_there_is_none() -> None:
    assert class_for(topic_with(), [class_with("fast")]) is None


def test_a_class_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(Refused) as refused:
        class_for(topic_with(delayClassName="slow"), [class_with("standard"), class_with("fast")])

    assert str(refused.value) == (
        'DelayTopic shop/reminders: spec.delayClassName: there is no DelayClass "slow"; there is: fast, standard'
    )


def test_two_default_classes_are_refused_because_nobody_can_know_which_is_meant() -> None:
    with pytest.raises(Refused) as refused:
        class_for(topic_with(), [class_with("b", default=True), class_with("a", default=True)])

    assert str(refused.value) == (
        "DelayTopic shop/reminders: spec.delayClassName: "
        "is required, as more than one DelayClass is marked default: a, b"
    )


@given(limit_ms=st.integers(10, 10**9), wanted_ms=st.none() | st.integers(10, 10**9))
def test_no_topic_gets_a_longer_delay_than_its_class_allows(limit_ms: int, wanted_ms: int | None) -> None:
    limit = Duration.of_ms(limit_ms)
    schedule = {} if wanted_ms is None else {"maxDelay": Duration.of_ms(wanted_ms)}
    delay_class = class_with(limits={"maxDelay": limit, "minPrecision": "10ms"}, defaults={"precision": "10ms"})

    try:
        settings = resolve(topic_with(schedule=schedule), delay_class)
    except Refused:
        assert wanted_ms is not None
        assert wanted_ms > limit_ms
    else:
        assert settings.schedule.max_delay.ms == min(wanted_ms or 720 * 3_600_000, limit_ms)
        assert settings.source.retention is not None
        assert settings.source.retention.ms >= settings.schedule.max_delay.ms


def test_with_a_connection_of_its_own_a_delay_topic_may_adopt_what_its_own_user_may() -> None:
    topic = topic_with(
        source={"topic": "anything", "management": "Adopt"}, connection={"bootstrapServers": "mine:9092"}
    )

    assert resolve(topic).source.management == "Adopt"


def test_the_dead_letters_that_nobody_named_are_allowed_by_a_class_that_says_nothing_of_access() -> None:
    assert resolve(topic_with(), class_with()).dead_letter.topic == "shop.reminders.delayed.dlq"


@pytest.mark.parametrize(("backend", "bound"), [("RedisZset", Quantity("512Mi")), ("KafkaBuckets", None)])
def test_the_class_bounds_what_a_delay_topic_keeps_in_its_redis(backend: str, bound: Quantity | None) -> None:
    of_class = {"type": "RedisZset", "redis": {"url": "redis://redis:6379/0"}}
    delay_class = class_with(backend=of_class, limits={"maxRedisMemory": "512Mi"})

    settings = resolve(topic_with(delayClassName="standard", backend={"type": backend}), delay_class)

    assert settings.backend.max_redis_memory == bound


def test_a_bound_that_is_too_small_for_anything_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="is too little; a DelayTopic needs at least 1Mi"):
        class_with(limits={"maxRedisMemory": "1023Ki"})
