"""Edge: one audit of the DelayTopics of a ledger, from what is in force for them to their reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from delaytopic_api.documents import BackendSettings, Settings
from delaytopic_api.policy import relay_config
from delaytopic_api.relay import KafkaClient, RelayConfig
from delaytopic_api.values import BackendType, topic_matcher
from delaytopic_audit.errors import AuditError, CannotJudge, LedgerError, OvertakenError, ReadingError
from delaytopic_audit.ledger.ledger import Ledger
from delaytopic_audit.model.manifest import Commit, Plan, Range, Refused, RunPlan, State
from delaytopic_audit.model.report import Report
from delaytopic_audit.model.rules import Rules
from delaytopic_audit.outputs import publish_tables
from delaytopic_audit.pipeline.gathering import Reported, gather
from delaytopic_audit.pipeline.ports import Progress
from delaytopic_audit.pipeline.run import NobodyJudged, execute_plan
from delaytopic_audit.reading.client import Reading, ReadingJob, read_by_client
from delaytopic_audit.reading.facts import KafkaFacts
from delaytopic_audit.reading.generations import Learned, in_force, learned_from, nothing_learned
from delaytopic_audit.reading.planning import Request, TopicState, make_plan
from delaytopic_audit.reading.settings import client_settings
from delaytopic_audit.report.reporting import make_report, no_verdict, window_of
from delaytopic_relay.dialects import rules_of

SPARK_FAILURES = (PySparkException, Py4JJavaError)
"""Errors that Spark raises: its own, and those of file systems as they come, as of a file that is gone."""
_GROUPS_AT_ONCE = 16
"""The groups that are asked at once: to ask one for its offsets is to wait, mostly for its coordinator."""
Result = Report | AuditError
"""The verdict on a DelayTopic; or why there is none, where that is no fault of its topics."""


class Audited(NamedTuple):
    """A DelayTopic to audit, and the rules that its delivery is held to."""

    settings: Settings
    rules: Rules

    @property
    def name(self) -> str:
        """`namespace/name`."""
        return f"{self.settings.namespace}/{self.settings.name}"


@dataclass(frozen=True)
class Options:
    """Options of an audit. `window_ms` is the reports' window (None: the budget's), `client` settings as after -X."""

    ledger: str
    window_ms: int | None
    client: dict[str, str]
    trusts_any_clock: bool = False
    restarts: bool = False
    since_ms: int | None = None


def check_topics(audited: Sequence[Audited], kafka: KafkaClient, options: Options, now_ms: int) -> dict[str, Result]:
    """Return the results of DelayTopics whose topics allow no verdict, whatever the last run was, by `namespace/name`.

    Asks Kafka alone, so that nobody waits for Spark to hear it.
    """
    try:
        plan = _Planner(audited, kafka, replace(options, restarts=True)).plan(now_ms, None, learns=False)
    except AuditError as error:
        return {each.name: error for each in audited}
    return {each.delay_topic: _result_of(each, now_ms) for each in plan.refused}


def _result_of(refused: Refused, now_ms: int) -> Result:
    if refused.unread:
        return ReadingError("\n".join(refused.reasons))
    return no_verdict(refused.delay_topic, refused.reasons, now_ms)


class Audit:
    """An audit of DelayTopics of one Kafka. `run`, write the reports where they belong, and then `done`."""

    def __init__(self, spark: SparkSession, audited: Sequence[Audited], kafka: KafkaClient, options: Options) -> None:
        """`audited` are what is in force; `kafka` says how to reach the cluster."""
        self._spark = spark
        self._names = [each.name for each in audited]
        self._options = options
        self._planner = _Planner(audited, kafka, options)
        self._ledger = Ledger(spark, options.ledger)
        self._plan: RunPlan | None = None

    def run(self, now_ms: int, progress: Progress) -> dict[str, Result]:
        """Read what is new, judge, commit, and report; or finish what a killed run had begun.

        The results are by `namespace/name`: a report without a verdict says why, and holds up nobody. Raises AuditError
        for what is true of all, among them OvertakenError when another audit was quicker.
        """
        last = self._ledger.last_commit()
        plan = self._ledger.open_plan()
        if plan is not None and (self._options.restarts or _is_past(plan, last) or plan.names != set(self._names)):
            self._ledger.close_plan(plan)
            plan = None
        try:
            if plan is None:
                plan = self._planner.plan(now_ms, last)
                if not plan.plans:
                    return {each.delay_topic: _result_of(each, now_ms) for each in plan.refused}
                self._ledger.write_plan(plan)
            elif _is_new(plan, last):
                progress(f"run {plan.sequence} did not come to its end: carrying out its plan")
            commit = self._commit_of(plan, last, progress)
        except NobodyJudged as error:
            self._give_up(plan)
            return {each.delay_topic: _result_of(each, now_ms) for each in error.refused}
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
        refused = {each.delay_topic: _result_of(each, now_ms) for each in commit.refused}
        judged = [name for name in self._names if name not in refused]
        return {**refused, **reports_of(self._ledger, commit, judged, self._options.window_ms, now_ms)}

    def publish(self, results: Mapping[str, Result], place: str, reports: str, now_ms: int) -> None:
        """Publish the ledger's tables, and these results, for others to ask; raises AuditError.

        `reports` is where their reports are. What a run does not come to, the next one makes up for.
        """
        publish_tables(self._spark, self._ledger, results, place, reports=reports, now_ms=now_ms)

    def done(self) -> None:
        """End the run, once its reports are where they belong."""
        if self._plan is not None:
            self._ledger.close_plan(self._plan)

    def _commit_of(self, plan: RunPlan, last: Commit | None, progress: Progress) -> Commit:
        if last is not None and not _is_new(plan, last):
            progress(f"run {plan.sequence} was committed, and is reported now")
            return last

        def read(ranges: Mapping[int, Sequence[Range]]) -> DataFrame:
            return read_by_client(self._spark, self._planner.job(plan, ranges))

        try:
            return execute_plan(plan, self._ledger, last, read, progress)
        except SPARK_FAILURES as error:
            raise ReadingError(_innermost(error)) from error

    def _give_up(self, plan: RunPlan | None) -> None:
        """Drop the plan after an error: only a run that was killed is repeated, others plan anew."""
        if plan is not None and _is_new(plan, self._ledger.last_commit()):
            self._ledger.close_plan(plan)

    def _is_own(self, commit: Commit | None) -> bool:
        return commit is not None and self._ledger.has_written(commit)

    def _overtaken(self) -> OvertakenError:
        return OvertakenError(
            f"another audit with this ledger was quicker: its verdicts count, and this one changed nothing in"
            f" {self._ledger.place}"
        )


class _Planner:
    """The plans of runs over some DelayTopics, from what Kafka and the last commit say of them."""

    def __init__(self, audited: Sequence[Audited], kafka: KafkaClient, options: Options) -> None:
        self._audited = {each.name: each for each in audited}
        self._configs = {each.name: _config_of(each.settings, kafka) for each in audited}
        self._options = options
        self._settings = client_settings(kafka, options.client)

    def plan(self, now_ms: int, last: Commit | None, *, learns: bool = True) -> RunPlan:
        """Return the plan of the next run, for all that can be planned; raises ReadingError."""
        facts = KafkaFacts(self._settings)
        known = {} if last is None else {state.plan.delay_topic: state for state in last.states}
        targets = self._targets(facts, known)
        # The sources last: what was delivered before the ends of the targets has its source record before these ends.
        outcomes = (topic for name, its in targets.items() for topic in (*its, self._configs[name].dead_letter.topic))
        states, failed = facts.states(outcomes, self._options.since_ms)
        # After the targets: of what was delivered before their ends is told by now.
        telling = {name: each.outcomes.topic for name, each in self._configs.items() if each.outcomes is not None}
        told, untold = facts.states(telling.values(), self._options.since_ms)
        states, failed = {**states, **told}, {**failed, **untold}
        sources, unasked = facts.states((each.source.topic for each in self._configs.values()), self._options.since_ms)
        # After the sources' ends were taken: what is read was appended before, by whatever rules.
        learned = self._learned(facts, sources) if learns else {}
        plans, refused = list[Plan](), list[Refused]()
        number = last.numbers if last is not None else 0
        for name, audited in self._audited.items():
            config = self._configs[name]
            its = [*targets[name], config.dead_letter.topic, *([telling[name]] if name in telling else [])]
            own = {topic: states[topic] for topic in its if topic in states}
            if config.source.topic in sources:
                own[config.source.topic] = sources[config.source.topic]
            errors = [failed[topic] for topic in its if topic in failed]
            errors += [unasked[config.source.topic]] if config.source.topic in unasked else []
            if errors:
                refused.append(Refused(delay_topic=name, reasons=[str(errors[0])], unread=True))
                continue
            request = _request(config, audited.rules, self._options, now_ms, number + 1)
            try:
                plan = make_plan(request, own, known.get(name), learned.get(name))
            except CannotJudge as error:
                refused.append(Refused(delay_topic=name, reasons=list(error.reasons)))
                continue
            plans.append(plan)
            number = max(number, plan.number)
        return RunPlan(sequence=last.sequence + 1 if last is not None else 1, plans=plans, refused=refused)

    def job(self, plan: RunPlan, ranges: Mapping[int, Sequence[Range]]) -> ReadingJob:
        """Return what to read of these ranges, by the numbers of the plan."""
        readings = [
            Reading(
                number=each.number,
                config=self._configs[each.delay_topic],
                ranges=list(ranges[each.number]),
                generations=in_force(each.generations, ranges[each.number]),
            )
            for each in plan.plans
            if ranges.get(each.number)
        ]
        return ReadingJob(client=self._options.client, readings=readings)

    def _targets(self, facts: KafkaFacts, known: Mapping[str, State]) -> dict[str, list[str]]:
        """Return the topics that each DelayTopic's records may be delivered to."""
        names = facts.topics()
        found = {}
        for name, config in self._configs.items():
            matches = topic_matcher(config.target.allowed_topics) if config.target.allowed_topics else None
            allowed = sorted(topic for topic in names if matches(topic)) if matches is not None else []
            # What records asked for once, they asked for, even if it is not allowed any more.
            state = known.get(name) if not self._options.restarts else None
            topics = dict.fromkeys((config.target.topic, *allowed, *(state.named if state is not None else [])))
            others = {config.source.topic, config.dead_letter.topic, config.outcomes and config.outcomes.topic}
            found[name] = [topic for topic in topics if topic not in others]
        return found

    def _learned(self, facts: KafkaFacts, sources: Mapping[str, TopicState]) -> dict[str, Learned]:
        configs = {name: each for name, each in self._configs.items() if each.source.topic in sources}

        def learned(config: RelayConfig) -> Learned:
            return _learned(config, facts, sources[config.source.topic].partitions)

        with ThreadPoolExecutor(_GROUPS_AT_ONCE) as pool:
            return dict(zip(configs, pool.map(learned, configs.values()), strict=True))


def _config_of(settings: Settings, kafka: KafkaClient) -> RelayConfig:
    # No relay is started: which backend it would have plays no part in what records mean.
    backend = BackendSettings(BackendType.KAFKA_BUCKETS, settings.backend.id, None)
    return relay_config(replace(settings, backend=backend), kafka)


def _request(config: RelayConfig, rules: Rules, options: Options, now_ms: int, number: int) -> Request:
    return Request(
        delay_topic=f"{config.namespace}/{config.name}",
        source=config.source.topic,
        target=config.target.topic,
        dead_letter=config.dead_letter.topic,
        rules=rules,
        now_ms=now_ms,
        trusts_any_clock=options.trusts_any_clock,
        restarts=options.restarts,
        number=number,
        outcomes=config.outcomes.topic if config.outcomes is not None else None,
        told=config.outcomes.only if config.outcomes is not None else [],
    )


def _learned(config: RelayConfig, facts: KafkaFacts, partitions: Iterable[int]) -> Learned:
    """Return what the relays' group says of the rules of source records."""
    configured = rules_of(config)
    try:
        return learned_from(configured, facts.committed(config.group_id, config.source.topic, partitions))
    except ReadingError as error:
        return nothing_learned(configured, config.group_id, str(error))


def _is_new(plan: RunPlan, last: Commit | None) -> bool:
    """Tell whether a plan is of a run that is yet to be committed."""
    return last is None or last.sequence < plan.sequence


def _is_past(plan: RunPlan, last: Commit | None) -> bool:
    """Tell whether a plan is of a run before the last one: whoever began it was overtaken, and did not come back."""
    return last is not None and plan.sequence < last.sequence


def reports_of(
    ledger: Ledger, commit: Commit, names: Iterable[str], window_ms: int | None, now_ms: int
) -> dict[str, Report]:
    """Return the reports on these DelayTopics, for a window of this length, or of the budget's (None).

    Each ends with its last closed minute. Raises LedgerError when the commit's tables are gone, as they are after a
    later run.
    """
    states = [state for name in names if (state := commit.state_of(name)) is not None]
    reported = [Reported(state, window_of(state, window_ms)) for state in states]
    try:
        gathered = gather(ledger, commit, reported)
    except SPARK_FAILURES as error:
        raise LedgerError(
            f"the tables of run {commit.sequence} in {ledger.place} cannot be read; if another run replaced them, "
            f"try again: {_innermost(error)}"
        ) from error
    return {
        each.state.plan.delay_topic: make_report(each.state, each.window, gathered[each.number], now_ms)
        for each in reported
    }


def _innermost(error: PySparkException | Py4JJavaError) -> str:
    """Return the telling line of an error in a worker, which Spark wraps in others."""
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("delaytopic_audit.errors.")]
    return told[-1].partition(": ")[2] if told else lines[0]
