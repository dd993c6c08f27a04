"""Edge: one audit of one DelayTopic, from what is in force for it to its report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.documents import BackendSettings, Settings
from delaytopic_api.policy import relay_config
from delaytopic_api.relay import KafkaClient, RelayConfig
from delaytopic_api.values import BackendType, topic_matcher
from delaytopic_audit.errors import CannotJudge, LedgerError, OvertakenError, ReadingError
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, Plan, Range
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.pipeline.gathering import gather
from delaytopic_audit.pipeline.ports import Progress
from delaytopic_audit.pipeline.run import execute_plan
from delaytopic_audit.reading.client import ReadingJob, read_by_client
from delaytopic_audit.reading.connector import read_by_connector
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.reading.generations import Learned, in_force, learned_from, nothing_learned
from delaytopic_audit.reading.planning import Request, make_plan
from delaytopic_audit.reading.settings import client_settings
from delaytopic_audit.report.reporting import final_before, make_report, no_verdict, window_of
from delaytopic_relay.dialects import rules_of

SPARK_FAILURES = (PySparkException, Py4JJavaError)
"""Errors that Spark raises: its own, and those of file systems as they come, as of a file that is gone."""


class Reader(StrEnum):
    """The reader of Kafka: the relay's client library in Python workers, or the official connector in the JVM."""

    CLIENT = "client"
    CONNECTOR = "connector"


@dataclass(frozen=True)
class Options:
    """Options of one audit. `window_ms` is the report's window (None: the budget's), `client` settings as after -X."""

    ledger: str
    window_ms: int | None
    rules: Rules
    client: dict[str, str]
    reader: Reader = Reader.CLIENT
    trusts_any_clock: bool = False
    restarts: bool = False
    since_ms: int | None = None


def check_topics(settings: Settings, kafka: KafkaClient, options: Options, now_ms: int) -> Report | None:
    """Return the report of topics that allow no verdict, whatever the last run was; None where they do.

    Asks Kafka alone, so that nobody waits for Spark to hear it. Raises ReadingError where Kafka does not answer.
    """
    config = _config_of(settings, kafka)
    request = replace(_request(config, options, now_ms), restarts=True)
    topics = (request.source, request.target, request.dead_letter)
    try:
        make_plan(request, KafkaFacts(client_settings(config.kafka, options.client)).states(topics), None)
    except CannotJudge as error:
        return no_verdict(request.delay_topic, error.reasons, now_ms)
    return None


def _config_of(settings: Settings, kafka: KafkaClient) -> RelayConfig:
    # No relay is started: which backend it would have plays no part in what records mean.
    backend = BackendSettings(BackendType.KAFKA_BUCKETS, settings.backend.id, None)
    return relay_config(replace(settings, backend=backend), kafka)


def _request(config: RelayConfig, options: Options, now_ms: int) -> Request:
    return Request(
        delay_topic=f"{config.namespace}/{config.name}",
        source=config.source.topic,
        target=config.target.topic,
        dead_letter=config.dead_letter.topic,
        rules=options.rules,
        now_ms=now_ms,
        trusts_any_clock=options.trusts_any_clock,
        restarts=options.restarts,
    )


class Audit:
    """One DelayTopic's audit. `run`, write the report where it belongs, and then `done`."""

    def __init__(self, spark: SparkSession, settings: Settings, kafka: KafkaClient, options: Options) -> None:
        """`settings` are what is in force; `kafka` says how to reach the cluster."""
        self._config = _config_of(settings, kafka)
        self._name = f"{settings.namespace}/{settings.name}"
        self._spark = spark
        self._options = options
        self._ledger = Ledger(spark, options.ledger, self._name)
        self._plan: Plan | None = None

    def run(self, now_ms: int, progress: Progress) -> Report:
        """Read what is new, judge, commit, and report; or finish what a killed run had begun.

        Without a verdict the report says why. Raises AuditError for what is no fault of the topics, among them
        OvertakenError when another audit of the DelayTopic was quicker.
        """
        last = self._ledger.last_commit()
        plan = self._ledger.open_plan()
        if plan is not None and (self._options.restarts or _is_past(plan, last)):
            self._ledger.close_plan(plan)
            plan = None
        try:
            if plan is None:
                plan = self._new_plan(now_ms, last)
                self._ledger.write_plan(plan)
            elif _is_new(plan, last):
                progress(f"run {plan.sequence} did not come to its end: carrying out its plan")
            commit = self._commit_of(plan, last, progress)
        except CannotJudge as error:
            self._give_up(plan)
            return no_verdict(self._name, error.reasons, now_ms)
        except OvertakenError as error:
            raise self._overtaken() from error
        except (ReadingError, LedgerError) as error:
            now_last = self._ledger.last_commit()
            # Whoever came first has removed what this run was still reading.
            if plan is not None and not _is_new(plan, now_last) and not self._is_own(now_last):
                raise self._overtaken() from error
            self._give_up(plan)
            raise
        self._plan = plan
        return self._report(commit, now_ms)

    def done(self) -> None:
        """End the run, once its report is where it belongs."""
        if self._plan is not None:
            self._ledger.close_plan(self._plan)

    def _commit_of(self, plan: Plan, last: Commit | None, progress: Progress) -> Commit:
        if last is not None and not _is_new(plan, last):
            progress(f"run {plan.sequence} was committed, and is reported now")
            return last
        try:
            return execute_plan(plan, self._ledger, last, partial(self._read, plan), progress)
        except SPARK_FAILURES as error:
            raise ReadingError(_innermost(error)) from error

    def _new_plan(self, now_ms: int, last: Commit | None) -> Plan:
        config, options = self._config, self._options
        request = _request(config, options, now_ms)
        facts = KafkaFacts(client_settings(config.kafka, options.client))
        allowed = facts.topics_like(topic_matcher(config.target.allowed_topics)) if config.target.allowed_topics else []
        # What records asked for once, they asked for, even if it is not allowed any more.
        others = [*allowed, *(last.named if last is not None and not options.restarts else [])]
        targets = [topic for topic in (request.target, *others) if topic not in (request.source, request.dead_letter)]
        # The source last: whatever was delivered before the ends of the targets has its source record before this end.
        order = [*dict.fromkeys(targets), request.dead_letter, request.source]
        states = facts.states(order, options.since_ms)
        source = states.get(request.source)
        # After the source's end was taken: what is read was appended before, by whatever rules.
        learned = _learned(config, facts, source.partitions) if source is not None else None
        return make_plan(request, states, last, learned)

    def _read(self, plan: Plan, ranges: list[Range]) -> DataFrame:
        job = ReadingJob(self._config, ranges, self._options.client, in_force(plan.generations, ranges))
        by = read_by_client if self._options.reader is Reader.CLIENT else read_by_connector
        return by(self._spark, job)

    def _report(self, commit: Commit, now_ms: int) -> Report:
        return report_of(self._ledger, commit, self._options.window_ms, now_ms)

    def _give_up(self, plan: Plan | None) -> None:
        """Drop the plan after an error: only a run that was killed is repeated, others plan anew."""
        if plan is not None and _is_new(plan, self._ledger.last_commit()):
            self._ledger.close_plan(plan)

    def _is_own(self, commit: Commit | None) -> bool:
        return commit is not None and self._ledger.has_written(commit)

    def _overtaken(self) -> OvertakenError:
        return OvertakenError(
            f"another audit of {self._name} was quicker: its verdict counts, and this one changed nothing in "
            f"{self._ledger.place}"
        )


def _learned(config: RelayConfig, facts: KafkaFacts, partitions: Iterable[int]) -> Learned:
    """Return what the relays' group says of the rules of source records."""
    configured = rules_of(config)
    try:
        return learned_from(configured, facts.committed(config.group_id, config.source.topic, partitions))
    except ReadingError as error:
        return nothing_learned(configured, config.group_id, str(error))


def _is_new(plan: Plan, last: Commit | None) -> bool:
    """Tell whether a plan is of a run that is yet to be committed."""
    return last is None or last.plan.sequence < plan.sequence


def _is_past(plan: Plan, last: Commit | None) -> bool:
    """Tell whether a plan is of a run before the last one: whoever began it was overtaken, and did not come back."""
    return last is not None and plan.sequence < last.plan.sequence


def report_of(ledger: Ledger, commit: Commit, window_ms: int | None, now_ms: int) -> Report:
    """Return the report of the last run for a window of this length, or of the budget's (None).

    It ends with the last closed minute. Raises LedgerError when its tables are gone, as they are after a later run.
    """
    window = window_of(commit, window_ms)
    try:
        gathered = gather(ledger, commit, window, final_before(commit))
    except SPARK_FAILURES as error:
        raise LedgerError(
            f"the tables of run {commit.plan.sequence} in {ledger.place} cannot be read; if another run replaced them, "
            f"try again: {_innermost(error)}"
        ) from error
    return make_report(commit, window, gathered, now_ms)


def _innermost(error: PySparkException | Py4JJavaError) -> str:
    """Return the telling line of an error in a worker, which Spark wraps in others."""
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("delaytopic_audit.errors.")]
    return told[-1].partition(": ")[2] if told else lines[0]
