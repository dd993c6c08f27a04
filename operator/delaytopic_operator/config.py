"""OperatorConfig, the document that the operator is started with; every field has a default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from delaytopic_api import Duration
from delaytopic_api.documents import (
    API_VERSION,
    ApiVersion,
    CronLine,
    ExecutorCount,
    KubernetesObject,
    Model,
    SparkConf,
    require,
)
from delaytopic_api.documents.model import exactly_one
from delaytopic_api.errors import ApiError
from delaytopic_api.loading import parse_yaml, validate
from delaytopic_api.values import AuditMode, AuditTables, Glob, Namespace, SecretName, Sha256, between
from delaytopic_operator.errors import ConfigurationError

Image = Annotated[str, Field(min_length=1, max_length=512)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000)]
AccountName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Label = Annotated[str, Field(min_length=1, max_length=317)]


class Images(Model):
    """The images of the pods that the operator makes."""

    relay: Image = "delaytopic/relay:0.1.0"
    """The image of relays whose DelayTopic names none."""
    audit: Image = "delaytopic/audit:0.1.0"
    """The image of the SLO audit."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """imagePullPolicy of both."""
    pull_secrets: list[str] = []
    """imagePullSecrets of both, by name."""


class ExecutorsConfig(Model):
    """Executor pods of audits in mode Kubernetes."""

    min: ExecutorCount = 1
    """The number that an audit begins with and always has."""
    max: ExecutorCount = 4
    """The most that it asks for while tasks wait."""
    resources: KubernetesObject = {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    """Requests and limits of each. It runs as many tasks at once as whole processors are in requests.cpu, and at least
    one; its memory is limits.memory."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        require((self.min <= self.max, "min", "must not be more than max"))
        return self


def has_safe_tables(ledger: str) -> bool:
    """Tell whether two audits at once may write tables beside a ledger, which is a URL."""
    return ledger.startswith(("s3a://", "file://"))


class AuditConfig(Model):
    """The SLO audit: a CronJob for all DelayTopics of a class, or for those without a class of a namespace."""

    schedule: CronLine | None = None
    """The time that it runs at, as cron, in UTC; an H as minute or hour is another one for each class and namespace,
    such as `H * * * *`. A class may have a schedule of its own. Absent: no audit is made by the operator."""
    ledger: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None
    """A URL that Spark takes, or a path below the volume; below it each class and each namespace has a folder."""
    reports_url: Annotated[str, Field(pattern="^https?://", max_length=1_024)] | None = None
    """The URL at which the folder `reports` of the volume, or beside the ledger, is served, for `status.slo.report`.
    Absent: its place in the volume or in the store."""
    tables: AuditTables = AuditTables.NONE
    """Delta: audits publish verdicts, minutes and findings as tables of Delta Lake for others to query, in the folder
    `tables` of the volume or below the ledger's URL. None: they publish none. A DelayClass may choose the other."""
    mode: AuditMode = AuditMode.JOB
    """Job: an audit is one pod. Kubernetes: its pod is Spark's driver, and asks the API server for executor pods. A
    DelayClass may choose the other for its DelayTopics."""
    driver_account: AccountName | None = None
    """A ServiceAccount in the namespaces where relays run, for the pods of audits in mode Kubernetes and needed for it.
    It may make pods, so whoever has its token can mount every Secret and volume of its namespace. The chart makes it
    and its role in the namespaces that it knows; one that is serviceAccount, too, is there already."""
    executors: ExecutorsConfig = ExecutorsConfig()
    """Executor pods of audits in mode Kubernetes."""
    master: str = "local[*]"
    """Spark's master. In mode Kubernetes one that begins with k8s://, or else https://kubernetes.default.svc."""
    resources: KubernetesObject = {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}
    """Requests and limits of the container."""
    spark_conf: SparkConf = {}
    """Settings of Spark, and with `spark.hadoop.` before them of Hadoop, such as the endpoint of an S3. No secrets: who
    may see pods sees them."""
    credentials_secret: SecretName | None = None
    """A Secret in the namespaces where relays run: its keys are environment variables of the audits and of nothing
    else, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."""
    service_account: AccountName | None = None
    """A ServiceAccount in the namespaces where relays run, which audits have in place of their relays' own: one that a
    cloud gives rights to the ledger (workload identity)."""
    volume: KubernetesObject | None = None
    """A volume (as in a pod, without its name) that holds the ledger, below /var/lib/delaytopic. Each audit has its own
    folders of it and no others; where the volume's kind ignores fsGroup, user 65532 has to be able to write to
    them."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        kept = self.volume is not None or (self.ledger is not None and "://" in self.ledger)
        require(
            (self.schedule is None or kept, "ledger", "must be a URL, or in a volume: what runs remember has to last"),
            (
                self.reports_url is None or kept,
                "reportsUrl",
                "needs a volume or a ledger that is a URL: without them reports are gone with their pods",
            ),
            (
                self.tables is AuditTables.NONE or self.volume is not None or has_safe_tables(self.ledger or ""),
                "tables",
                "needs a volume, or a ledger in s3a:// or file://: in other stores Delta's tables are not safe",
            ),
            (
                self.mode is AuditMode.JOB or self.driver_account is not None,
                "driverAccount",
                "is required for mode Kubernetes",
            ),
        )
        return self


class InlineConnections(Model):
    """Connections that DelayTopics bring themselves, instead of a class: the operator opens them, too."""

    enabled: bool = True
    """True if DelayTopics may have connections of their own. With tenants who do not trust each other: false, and only
    classes are used."""
    allowed_hosts: Annotated[list[Glob], Field(max_length=100)] = ["*"]
    """Globs of the hosts of Kafka, Redis and issuers of tokens; brokers may send clients on to others. With other globs
    than `*`, a Redis URL in a Secret is refused: it hides the host."""


class TokenSecret(Model):
    """The Secret with the token that a gateway shows relays."""

    name: SecretName
    """Its name, in `namespace`."""
    key: Annotated[str, Field(min_length=1, max_length=253)] = "token"
    """The key whose value is the token."""


class GatewayConfig(Model):
    """The gateway that relays answer beside clients of their own pods."""

    token_sha256: Sha256 | None = None
    """The SHA-256 of the token that the gateway shows relays, in hexadecimal digits. Relays of a class are told it, and
    a change rolls them. Absent: that of the token in tokenSecret."""
    token_secret: TokenSecret | None = None
    """The Secret with that token. The operator makes it where there is none, and reads it when it starts."""
    labels: Annotated[dict[str, str], Field(min_length=1)] = {
        "app.kubernetes.io/name": "delaytopic",
        "app.kubernetes.io/component": "gateway",
    }
    """Labels of its pods: the NetworkPolicy of relays lets them in from `namespace`."""

    @model_validator(mode="after")
    def _rules(self) -> Self:
        one = exactly_one(token_sha256=self.token_sha256, token_secret=self.token_secret)
        require((one, "", "set exactly one of tokenSha256 and tokenSecret"))
        return self


class OperatorConfig(Model):
    """All that the operator needs to know."""

    api_version: ApiVersion = ApiVersion(API_VERSION)
    """delaytopic.dev/v1beta1"""
    kind: Literal["OperatorConfig"] = "OperatorConfig"
    """OperatorConfig"""
    namespace: Namespace = "delaytopic-system"
    """The namespace where the operator runs, keeps its Lease and its records of backlogs and, unless the class says
    otherwise, the relays."""
    watch_namespaces: list[Namespace] = []
    """The namespaces whose DelayTopics are looked after. Empty: all."""
    relay_namespaces: list[Namespace] | None = None
    """The namespaces where relays may run beside `namespace`; what the operator makes is watched there and nowhere
    else. A DelayTopic whose relays would run elsewhere waits (`RelayNamespaceNotAllowed`). Absent: in all
    namespaces."""
    operator_labels: Annotated[dict[str, str], Field(min_length=1)] = {
        "app.kubernetes.io/name": "delaytopic",
        "app.kubernetes.io/component": "operator",
    }
    """Labels of the operator's own pods: the NetworkPolicy of relays lets them in from `namespace`, and no other pods
    of it."""
    images: Images = Images()
    """The images of the pods."""
    inherited_labels: list[Label] = []
    """Labels of a DelayTopic that its relays get, too; those of GitOps tools must not be among them."""
    inherited_annotations: list[Label] = []
    """Annotations of a DelayTopic that its relays get, too."""
    relay_resources: KubernetesObject = {"requests": {"cpu": "250m", "memory": "384Mi"}, "limits": {"memory": "512Mi"}}
    """Requests and limits of relays for which neither DelayTopic nor class sets any."""
    inline_connections: InlineConnections = InlineConnections()
    """Connections that DelayTopics bring themselves."""
    network_policy: Literal["Create", "None"] = "Create"
    """Create: relays get a NetworkPolicy."""
    relay_egress_ports: list[Annotated[int, Field(strict=True, ge=1, le=65_535)]] = []
    """The ports that the NetworkPolicy of relays lets out beside DNS and the ports of bootstrap servers and Redis URL:
    ports that brokers advertise, such as node ports, or that Services map to."""
    monitoring_namespaces: dict[str, str] = {"delaytopic.dev/monitoring": "true"}
    """Labels of namespaces from which the NetworkPolicy lets monitoring read the relays' pages. Empty: all."""
    gateway: GatewayConfig | None = None
    """The gateway that may ask relays what is pending. Absent: none."""
    audit: AuditConfig = AuditConfig()
    """The SLO audit."""
    workers: Count = 16
    """The number of reconciliations that run at once."""
    workers_per_namespace: Count | None = None
    """The number of them for the DelayTopics of one namespace, whose Kafka may not answer. Absent: half of workers."""
    resync: Annotated[Duration, between("10s", "24h")] = Duration("5m")
    """The time after which everything is listed again although nothing happened, every DelayTopic is looked at (a fifth
    of it is jitter), and settings of topics are read again."""
    poll: Annotated[Duration, between("1s", "10m")] = Duration("15s")
    """The time between two looks at the relays' pages: for the status, and for scaling."""
    status_interval: Annotated[Duration, between("0s", "1h")] = Duration("5m")
    """Numbers in a status are written at most this often, and those of five DelayTopics a second, so that each has its
    turn after a quarter of an hour where there are 4,000; conditions at once."""
    rollouts: Count = 10
    """The number of DelayTopics that get new pods at once where a class, a Secret or, by an upgrade, the operator
    itself changes; a tenth of all if that is more."""
    lease_duration: Annotated[Duration, between("3s", "10m")] = Duration("15s")
    """A standby takes over after this much silence of the leader."""
    http_port: Annotated[int, Field(strict=True, ge=0, le=65_535)] = 8081
    """The port of /livez, /readyz and /metrics; 0 for any free port."""

    def with_relay_token(self, sha256: str) -> OperatorConfig:
        """Return the configuration in which relays know the gateway by the digest of a token."""
        if self.gateway is None:
            return self
        gateway = self.gateway.model_copy(update={"token_sha256": sha256, "token_secret": None})
        return self.model_copy(update={"gateway": gateway})

    def lets_relays_run_in(self, namespace: str) -> bool:
        """Tell whether relays may run in the namespace."""
        return self.relay_namespaces is None or namespace in (self.namespace, *self.relay_namespaces)


def read_operator_config(path: Path) -> OperatorConfig:
    """The configuration in a YAML file; raises `ConfigurationError` with a line for each thing to change."""
    try:
        contents = [
            content for content in parse_yaml(path.read_text(encoding="utf-8"), str(path)) if content is not None
        ]
        if len(contents) != 1:
            raise ConfigurationError(f"{path}: must hold one OperatorConfig, not {len(contents)} documents")
        if not isinstance(contents[0], Mapping) or contents[0].get("kind") != "OperatorConfig":
            raise ConfigurationError(f"{path}: kind: must be OperatorConfig")
        return validate(OperatorConfig, contents[0], str(path))
    except (OSError, UnicodeDecodeError, ApiError) as error:
        raise ConfigurationError(f"{error}") from error
