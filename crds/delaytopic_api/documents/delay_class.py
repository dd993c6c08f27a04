"""DelayClass, the platform team's document: connection, credentials, limits and defaults for many DelayTopics."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from delaytopic_api.documents.connection import KafkaConnection, RedisConnection, SigningKeySecret
from delaytopic_api.documents.delay_topic import DrainTimeout, LongDelay
from delaytopic_api.documents.dialects import Precision
from delaytopic_api.documents.metadata import DEFAULT_CLASS_ANNOTATION, ApiVersion, ClusterMetadata
from delaytopic_api.documents.model import Model, require
from delaytopic_api.documents.pods import PodTemplate, Resources
from delaytopic_api.documents.relays import SparkConf, Utilization
from delaytopic_api.documents.status import DelayClassStatus
from delaytopic_api.documents.topics import LONGEST_RETENTION
from delaytopic_api.errors import InvalidText
from delaytopic_api.values.choices import AuditMode, AuditTables, BackendType, Guarantee, OnRevoked, TopicProvisioning
from delaytopic_api.values.cluster_rules import Checked, Rule
from delaytopic_api.values.duration import Duration, between
from delaytopic_api.values.lists import AS_SET
from delaytopic_api.values.names import Glob, Namespace, PartitionCount, ReplicaCount, ReplicationFactor, TopicTemplate
from delaytopic_api.values.quantity import Quantity

TopicTemplates = Annotated[list[TopicTemplate], Field(max_length=100), AS_SET]
Globs = Annotated[list[Glob], Field(max_length=100), AS_SET]
CronLine = Annotated[str, Field(min_length=1, max_length=100)]
ExecutorCount = Annotated[int, Field(strict=True, ge=1, le=1_000)]


def _enough_for_a_segment(memory: Quantity) -> Quantity:
    if memory.value < 1 << 20:
        raise InvalidText(f'"{memory}" is too little; a DelayTopic needs at least 1Mi')
    return memory


RedisMemory = Annotated[
    Quantity,
    Checked(
        _enough_for_a_segment,
        Rule(
            "quantity(string(self)).compareTo(quantity('1Mi')) >= 0", "is too little; a DelayTopic needs at least 1Mi"
        ),
    ),
]


class NamespaceSelector(Model):
    """A selection of namespaces by their labels."""

    match_labels: dict[str, str]
    """The namespace must have all of these labels, such as `team: shop`."""


class AccessSpec(Model):
    """Namespaces that may use the class, and the topics they may name."""

    namespace_selector: NamespaceSelector | None = None
    """The labels of the namespaces whose DelayTopics may use the class. Absent: all namespaces may."""
    source_topics: TopicTemplates = ["{namespace}.*"]
    """The globs of topics that may be a source; `{namespace}` stands for the DelayTopic's, as in `{namespace}.*`."""
    target_topics: TopicTemplates = ["{namespace}.*"]
    """The globs of topics that may be written to as target, by deliver-to, as dead letters, history or outcomes, such
    as `{namespace}.*`."""
    adopt_topics: TopicTemplates = []
    """Globs of topics that `management: Adopt` may take over, with the rights of this class's Kafka user."""
    on_revoked: OnRevoked = OnRevoked.KEEP
    """The fate of relays that run when namespaceSelector, sourceTopics or targetTopics no longer allow their namespace
    or topics. Keep: they run on with the class's login, as they are. Suspend: they are scaled to zero, even if the
    DelayTopic is paused; topics, offsets and backlog stay, and relays go on by themselves when they are allowed again.
    In both cases the status says AccessRevoked, and no further audit reads the topics."""


class AllowedPodTemplate(Model):
    """Globs of what DelayTopics may set on pods, which run beside those of others; none by default."""

    labels: Globs = []
    """The globs of the labels that DelayTopics may set on pods, such as `team`."""
    annotations: Globs = []
    """The globs of the annotations that DelayTopics may set on pods, such as `example.com/*`."""
    node_selector: Globs = []
    """The globs of the node labels that DelayTopics may select by, such as `topology.kubernetes.io/*`."""
    tolerations: Globs = []
    """The globs of the keys of taints that DelayTopics may tolerate; a toleration without a key needs `*`."""
    priority_class_names: Globs = []
    """The globs of the PriorityClasses that DelayTopics may name, such as `batch-*`."""
    affinity: Annotated[bool, Field(strict=True)] = False
    """Allow any affinity; an anti-affinity can keep pods of others away from a node."""


class LimitsSpec(Model):
    """The most that a DelayTopic may ask for."""

    max_delay: LongDelay | None = None
    """The longest schedule.maxDelay and schedule.fixedDelay that a DelayTopic may have, such as 720h. Absent: no
    limit."""
    min_precision: Precision | None = None
    """The finest precision that a DelayTopic may have, such as 100ms. Absent: no limit."""
    max_replicas: Annotated[ReplicaCount, Field(ge=1)] | None = None
    """The most relays that one DelayTopic may have, such as 12. Absent: no limit."""
    max_delay_topics_per_namespace: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] | None = None
    """The most DelayTopics that one namespace may have, such as 50. Absent: no limit."""
    max_partitions: PartitionCount | None = None
    """The most partitions that a topic may have, such as 48. Absent: no limit."""
    max_partitions_per_namespace: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    """The most partitions of all topics together that the DelayTopics of one namespace have made, those of the backend
    included; a topic of which nobody says how many it has counts as one. Absent: no limit."""
    max_retention: Annotated[Duration, between("1s", LONGEST_RETENTION)] | None = None
    """The longest retention of a topic, such as 8760h, also as retention.ms; compaction without deletion is longer.
    Absent: no limit."""
    allowed_topic_config: Globs = [
        *("cleanup.policy", "compression.type", "delete.retention.ms", "message.timestamp.*", "min.insync.replicas"),
        "retention.*",
    ]
    """Globs of the settings that a DelayTopic may give to its topics. Others, such as segment.bytes, can harm the
    brokers."""
    max_redis_memory: RedisMemory | None = None
    """The most that one DelayTopic keeps in the class's Redis, at least 1Mi. Each partition of its source has an equal
    share. One that has used up its share is read no further until a quarter of that is free; what waits is
    delivered. Default: as much as Redis has left of its maxmemory, so that one DelayTopic alone stops at half of it."""
    max_relay_resources: Annotated[dict[str, Quantity], Field(max_length=20)] = {}
    """The most that relay.resources may request and must limit itself to. What is not named here: cpu and memory
    without a limit, others not at all."""
    allowed_pod_template: AllowedPodTemplate = AllowedPodTemplate()
    """The parts of relay.podTemplate that DelayTopics may set; none by default."""


class DefaultsSpec(Model):
    """The settings of what a DelayTopic does not say."""

    precision: Precision | None = None
    """The precision of DelayTopics that set none, such as 1s."""
    max_delay: LongDelay | None = None
    """The schedule.maxDelay of DelayTopics that set none, such as 720h."""
    guarantee: Guarantee | None = None
    """The guarantee of DelayTopics that set none."""
    partitions: PartitionCount | None = None
    """The number of partitions of source, target and dead-letter topics that set none, such as 12."""
    replication_factor: ReplicationFactor | None = None
    """The number of copies of source, target and dead-letter topics that set none, such as 3."""
    drain_timeout: DrainTimeout | None = None
    """The drainTimeout of DelayTopics that set none, such as 15m."""
    target_utilization: Utilization | None = None
    """The autoscaling.targetUtilization of DelayTopics that set none, such as 60%."""


class ClassBackendSpec(Model):
    """The place where schedules wait that are not due soon."""

    type: BackendType
    """The backend of DelayTopics that choose none: RedisZset or KafkaBuckets."""
    redis: RedisConnection | None = None
    """The Redis of the class; without it, no DelayTopic of the class can use RedisZset."""
    signing_key: SigningKeySecret | None = None
    """Keys that sign what waits in the backend, in a Secret where the relays run: relays then believe nobody else who
    can write to Redis or to bucket topics. Absent: nothing is signed."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        needs_redis = self.type is BackendType.REDIS_ZSET
        require((self.redis is not None or not needs_redis, "redis", f"is required for type {self.type}"))
        return self


class RelayTemplate(Model):
    """Settings that all relays of the class share."""

    resources: Resources = Resources()
    """The requests and limits of relays whose DelayTopics set none."""
    pod_template: PodTemplate = PodTemplate()
    """The template of the pods, in the shape of a PodTemplateSpec. A DelayTopic adds what limits.allowedPodTemplate
    lets it, and changes nothing that is said here but topologySpreadConstraints."""
    session_timeout: Annotated[Duration, between("6s", "30m")] = Duration("6s")
    """The silence after which Kafka gives a relay's partitions to others, within the broker's
    group.min.session.timeout.ms and group.max.session.timeout.ms. Longer where networks or nodes pause."""
    shutdown_grace: Annotated[Duration, between("0s", "10m")] = Duration("20s")
    """The longest time that a relay takes to hand over when its pod is told to stop."""


class ExecutorsTemplate(Model):
    """Executor pods of audits in mode Kubernetes. What is absent is as the operator says."""

    min: ExecutorCount | None = None
    """The number that an audit begins with and always has. Absent: the operator's, and max if that is less."""
    max: ExecutorCount | None = None
    """The most that it asks for while tasks wait. Absent: the operator's, and min if that is more."""
    resources: Resources = Resources()
    """The requests and limits of each. It runs as many tasks at once as whole processors are in requests.cpu, and at
    least one; its memory is limits.memory. Absent: the operator's."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require((not (self.min and self.max) or self.min <= self.max, "min", "must not be more than max"))
        return self


class AuditTemplate(Model):
    """Settings of the audit of the class's DelayTopics, which is one CronJob for all of them."""

    schedule: CronLine | None = None
    """The times of the audit as a cron line in UTC, such as `*/15 * * * *`; an H as minute or hour is another number
    for each class, as in `H * * * *`. Absent: the operator's, without which there are no audits at all."""
    mode: AuditMode | None = None
    """Job: an audit is one pod. Kubernetes: its pod is Spark's driver, and asks the API server for executor pods; the
    operator has to name an account for that. Absent: the operator's."""
    executors: ExecutorsTemplate = ExecutorsTemplate()
    """Executor pods of audits in mode Kubernetes."""
    tables: AuditTables | None = None
    """Delta: the audit publishes verdicts, minutes and findings as tables of Delta Lake for others to query, in
    `tables/classes/<name>` of the operator's volume or below its ledger. None: it publishes none. Absent: the
    operator's."""
    resources: Resources = Resources()
    """The requests and limits of an audit's pod. Absent: the operator's."""
    spark_conf: SparkConf = {}
    """The settings of Spark that come before the operator's, such as `spark.sql.shuffle.partitions: "4"`."""


class DelayClassSpec(Model):
    """Connections, defaults, limits and access that the class gives."""

    connection: KafkaConnection
    """The connection to Kafka; its Secrets are read from the namespace where the relays run, and from nowhere else."""
    topic_provisioning: TopicProvisioning = TopicProvisioning.DIRECT
    """Direct: in Kafka. StrimziKafkaTopic: as KafkaTopic objects. None: topics must exist."""
    backend: ClassBackendSpec = ClassBackendSpec(type=BackendType.KAFKA_BUCKETS)
    """The default backend. Absent: KafkaBuckets, which need nothing but Kafka."""
    relay_namespace: Namespace | None = None
    """The namespace of the relays, such as `delay-relays`. Absent: the operator's."""
    access: AccessSpec = AccessSpec()
    """Namespaces that may use the class, and the topics they may name."""
    limits: LimitsSpec = LimitsSpec()
    """The most that a DelayTopic may ask for."""
    defaults: DefaultsSpec = DefaultsSpec()
    """The values for what a DelayTopic does not say."""
    relay: RelayTemplate = RelayTemplate()
    """Settings that all relays of the class share."""
    audit: AuditTemplate = AuditTemplate()
    """Settings of the audits of the class's DelayTopics."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        limits, defaults = self.limits, self.defaults
        require(
            (
                not (limits.max_delay and defaults.max_delay) or defaults.max_delay.ms <= limits.max_delay.ms,
                "defaults.maxDelay",
                f"is {defaults.max_delay}, longer than limits.maxDelay ({limits.max_delay})",
            ),
            (
                not (limits.min_precision and defaults.precision) or defaults.precision.ms >= limits.min_precision.ms,
                "defaults.precision",
                f"is {defaults.precision}, finer than limits.minPrecision ({limits.min_precision})",
            ),
            (
                not (limits.max_partitions and defaults.partitions) or defaults.partitions <= limits.max_partitions,
                "defaults.partitions",
                f"is {defaults.partitions}, more than limits.maxPartitions ({limits.max_partitions})",
            ),
        )
        return self


class DelayClass(Model):
    """Connection, credentials, limits and defaults for the DelayTopics that name it."""

    api_version: ApiVersion
    """delaytopic.dev/v1beta1"""
    kind: Literal["DelayClass"]
    """DelayClass"""
    metadata: ClusterMetadata
    """Name, and whether it is the default class."""
    spec: DelayClassSpec
    """Connections, defaults, limits and access that the class gives."""
    status: DelayClassStatus | None = None
    """The observed state, written by the operator."""

    @property
    def is_default(self) -> bool:
        """Tell whether DelayTopics that name no class get this one."""
        return self.metadata.annotations.get(DEFAULT_CLASS_ANNOTATION) == "true"
