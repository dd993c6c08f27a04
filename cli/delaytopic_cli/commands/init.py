"""`delaytopic init`: a document of any kind to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from delaytopic_process.command_line import echo, echo_lines
from delaytopic_process.errors import InputError

TEMPLATE = """\
# A DelayTopic: records produced to the source topic appear on the target topic at their own time.
# Try it on this machine: delaytopic local -f FILE; all fields: docs/reference/delaytopic.md
apiVersion: delaytopic.dev/v1beta1
kind: DelayTopic
metadata:
  name: order-reminders
  namespace: shop
spec:
  source:
    topic: shop.order-reminders.delayed   # producers write here, with a header such as deliver-after: 90s
    partitions: 4                         # the most relays that can share the work
  target:
    topic: shop.order-reminders           # consumers read here
    # allowedTopics: ["shop.*"]           # further topics that a record may name with deliver-to
  # deadLetter: {topic: shop.order-reminders.dlq}   # by default the source's name and .dlq
  schedule:
    maxDelay: 720h                        # what is due later becomes a dead letter
    # defaultDelay: 5m                    # of records without a time header; by default they leave at once
    # fixedDelay: 5m                      # or: the same delay for every record, which then names none
    # ids: Disabled                       # if no record is ever replaced or cancelled
  precision: 1s                           # how late a record may be before it counts as late
  # delayClassName: standard              # on Kubernetes: where Kafka and the backend are
"""


TEMPLATE_OF_CLASS = """\
# A DelayClass: where Kafka is, and what DelayTopics may ask for; the platform team's, for all namespaces.
# Apply it: kubectl apply -f FILE; all fields: docs/reference/delayclass.md
apiVersion: delaytopic.dev/v1beta1
kind: DelayClass
metadata:
  name: standard
  annotations:
    delaytopic.dev/is-default-class: "true"   # DelayTopics that name no class get this one, and keep it
spec:
  connection:
    bootstrapServers: kafka-bootstrap.kafka:9093
    tls: {trustedCertificates: [{secretName: kafka-ca}]}
    authentication:                       # Secrets are read from the namespace where the relays run
      type: ScramSha512
      username: delaytopic
      passwordSecret: {secretName: delaytopic-scram}
  # topicProvisioning: StrimziKafkaTopic  # topics as KafkaTopic objects; by default Kafka is asked for them
  # backend: {type: RedisZset, redis: {urlSecret: {secretName: delaytopic-redis}}}   # by default KafkaBuckets
  access:
    # namespaceSelector: {matchLabels: {delaytopic.dev/enabled: "true"}}   # by default all namespaces
    sourceTopics: ["{namespace}.*"]       # topics that a DelayTopic of a namespace may name
    targetTopics: ["{namespace}.*"]
  limits:
    maxDelay: 2160h                       # the longest that a DelayTopic may ask for
    maxPartitions: 48
    maxReplicas: 12
    # maxRelayResources: {cpu: "2", memory: 2Gi}
  defaults:                               # for what a DelayTopic does not say
    maxDelay: 720h
    replicationFactor: 3
"""
TEMPLATE_OF_RECURRING = """\
# A RecurringRecord: the operator writes it to the source of a DelayTopic, which delivers it again and again.
# Apply it beside the DelayTopic: kubectl apply -f FILE; all fields: docs/reference/recurringrecord.md
apiVersion: delaytopic.dev/v1beta1
kind: RecurringRecord
metadata:
  name: daily-report
  namespace: shop
spec:
  delayTopic: order-reminders             # of this namespace
  cron: 0 9 * * mon-fri                   # or every: 1h
  timeZone: Europe/Berlin                 # by default UTC
  # from: "2027-01-01T00:00:00Z"          # nothing before it
  # until: "2027-12-31T23:59:00Z"         # nothing after it
  # jitter: 5m                            # each delivery is put off by less than this
  # missed: None                          # after an outage; by default the newest missed time is made up for
  key: daily-report
  # headers: {kind: report}
  value: report
  # suspend: true                         # cancels what waits
  # deletionPolicy: Cancel                # by default it recurs on when this object is deleted
"""
TEMPLATES = {"DelayTopic": TEMPLATE, "DelayClass": TEMPLATE_OF_CLASS, "RecurringRecord": TEMPLATE_OF_RECURRING}


@click.command(short_help="Write a DelayTopic, a DelayClass or a RecurringRecord to begin with.")
@click.option("--kind", type=click.Choice([*TEMPLATES]), default="DelayTopic", show_default=True, help="Of which kind.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write it there; what exists is not overwritten. Default: standard output.",
)
def init(kind: str, output: Path | None) -> None:
    """Write the YAML of a DelayTopic, a DelayClass or a RecurringRecord.

    It has a comment for each field that one may want to change.

    \b
    Examples:
      delaytopic init
      delaytopic init -o reminders.yaml && delaytopic local -f reminders.yaml
      delaytopic init --kind DelayClass
    """
    template = TEMPLATES[kind]
    if output is None:
        echo_lines(template.removesuffix("\n"))
        return
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(template)
    except FileExistsError as error:
        raise InputError(f"--output: {output} exists already; choose another name") from error
    except OSError as error:
        raise InputError(f"--output: {output} cannot be written: {error.strerror}") from error
    next_step = "try it: delaytopic local" if kind == "DelayTopic" else "check it: delaytopic validate"
    echo(f"wrote {output}; {next_step} -f {output}")
